"""Django's ORM: tables by its schema editor, introspection, queries, against the server its environment names."""
from decimal import Decimal

import django
from django.conf import settings

from common import DATABASE, HOST, PORT, USER, check, run, same

settings.configure(
    USE_TZ=True, INSTALLED_APPS=["shelves"], DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": DATABASE, "HOST": HOST, "PORT": str(PORT), "USER": USER}},
)
django.setup()

from django.db import IntegrityError, connection, models, transaction  # noqa: E402
from shelves.models import Item, Shelf  # noqa: E402


def make():
    with connection.cursor() as cursor:
        cursor.execute("drop table if exists shelves_item, shelves_shelf")
    with connection.schema_editor() as editor:
        editor.create_model(Shelf)
        editor.create_model(Item)


@check
def models_are_created_altered_and_inspected():
    make()
    with connection.cursor() as cursor:
        names = connection.introspection.table_names(cursor)
        assert {"shelves_item", "shelves_shelf"} <= set(names), names
        columns = [c.name for c in connection.introspection.get_table_description(cursor, "shelves_item")]
        same(sorted(columns), ["added", "blob", "id", "key", "price", "shelf_id", "spent", "title"])
        found = connection.introspection.get_constraints(cursor, "shelves_item")
        assert found["price_not_negative"]["check"], found
        assert any(f["index"] and f["columns"] == ["shelf_id"] for f in found.values()), found
        same(connection.introspection.get_primary_key_column(cursor, "shelves_item"), "id")
        same(connection.introspection.get_sequences(cursor, "shelves_item")[0]["column"], "id")
    with connection.schema_editor() as editor:
        field = models.IntegerField(default=7)
        field.set_attributes_from_name("extra")
        editor.add_field(Item, field)
        editor.remove_field(Item, field)


@check
def rows_are_kept_and_queried():
    make()
    shelf = Shelf.objects.create(name="one")
    Item.objects.bulk_create([Item(shelf=shelf, title=f"t{n}", price=Decimal(n), blob=b"\x00") for n in range(200)])
    same(Item.objects.count(), 200)
    same(Item.objects.filter(price__gte=100, title__startswith="t1").count(), 100)
    same(Item.objects.filter(title__icontains="T19").count(), 11)
    same(Item.objects.aggregate(models.Sum("price"))["price__sum"], Decimal("19900.00"))
    same(Shelf.objects.annotate(n=models.Count("item")).get().n, 200)
    same(Item.objects.filter(price__lt=5).update(price=models.F("price") + 1000), 5)
    same([i.title for i in Item.objects.order_by("-price", "title")[:2]], ["t4", "t3"])
    same(Item.objects.select_related("shelf").first().shelf.name, "one")
    same(bytes(Item.objects.first().blob), b"\x00")
    same(Item.objects.filter(shelf__name__in=["one", "two"]).exists(), True)
    same(len({str(d) for d in Item.objects.dates("added", "year")}), 1)
    got, made = Shelf.objects.get_or_create(name="two")
    same(made, True)
    same(Shelf.objects.update_or_create(name="two", defaults={"name": "three"})[1], False)
    try:
        with transaction.atomic():
            Shelf.objects.create(name="one")
        raise AssertionError("the name was taken")
    except IntegrityError:
        pass
    with transaction.atomic():
        same(Shelf.objects.select_for_update().get(name="one").pk, shelf.pk)
    same(sum(1 for _ in Item.objects.iterator(chunk_size=50)), 200)
    same(Shelf.objects.filter(name="one").delete()[0], 201)
    same(Item.objects.values("shelf").annotate(models.Max("price")).count(), 0)
    same(Shelf.objects.raw("select * from shelves_shelf where name = %s", ["three"])[0].name, "three")


run()
