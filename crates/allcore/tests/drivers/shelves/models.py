"""Shelves, and items on them."""
from django.db import models


class Shelf(models.Model):
    name = models.CharField(max_length=40, unique=True)


class Item(models.Model):
    # Without a constraint: Django's are deferrable, which is refused (0A000).
    shelf = models.ForeignKey(Shelf, on_delete=models.CASCADE, db_constraint=False)
    title = models.TextField(db_index=True)
    price = models.DecimalField(max_digits=8, decimal_places=2)
    added = models.DateTimeField(auto_now_add=True)
    blob = models.BinaryField(null=True)
    key = models.UUIDField(null=True)
    spent = models.DurationField(null=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(price__gte=0), name="price_not_negative")]
