"""A shop: customers, orders, items and their like, for statements about one access path each.

Columns have the shapes that decide a plan: rare values among common ones, Zipf's law, NULLs, values
that follow the key or decide each other. Keys are also texts, uuids, timestamps and numerics.
"""

from datetime import date, datetime, timedelta
from random import Random

from plans_data import Zipf, chance, uuid_of

START = datetime(2023, 1, 1)
FIRST_DAY = date(2023, 1, 1)
REGIONS = ["north", "south", "east", "west", "centre", "coast", "hills", "isles"]
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
WORDS = "late paid gift again fragile urgent partly heavy return quiet".split()


def customers(count):
    random = Random(21).random
    zip_code = Zipf(random, 2000, 0.7)
    for key in range(1, count + 1):
        code = zip_code()
        # A zip code decides the city, and the city the region.
        city = code % 200
        status = chance(random, {"active": 0.9, "paused": 0.099, "banned": 0.001})
        joined = START + timedelta(minutes=int(500_000 * random()))
        yield (key, f"customer {key}", f"user{key * 7919 % 1_000_003}@example.org", REGIONS[city % 8], f"city {city}", code,
               status, f"{int(1_000_000 * random() ** 3) / 100:.2f}", int(count * random()) + 1 if random() < 0.7 else None,
               uuid_of(f"c{key}"), joined, "note" if random() < 0.2 else None)


def orders(count, buyers):
    random = Random(22).random
    buyer, kind = Zipf(random, buyers, 0.9), Zipf(random, 10, 1.5)
    for key in range(1, count + 1):
        status = chance(random, {"done": 0.969, "open": 0.03, "failed": 0.001})
        placed = START + timedelta(minutes=5 * key + int(60 * random()))
        due = placed.date() + timedelta(days=int(30 * random()))
        prefix = LETTERS[int(26 * random() ** 2)] + LETTERS[int(26 * random())]
        yield (key, buyer() * 7 % buyers + 1, status, kind(), placed, due, f"{int(10 ** (2 + 5 * random())) / 100:.2f}",
               f"{prefix}-{key:06}", uuid_of(f"o{key}"), int(100 * random()), int(1000 * random()), int(count * random()),
               int(1000 * random()) if random() < 0.5 else None,
               f"{WORDS[int(10 * random())]} {WORDS[int(10 * random())]} {key:012}")


def items(count, goods):
    random = Random(23).random
    product = Zipf(random, goods, 0.9)
    for order in range(1, count + 1):
        for line in range(1, 2 + int(4 * random())):
            shipped = FIRST_DAY + timedelta(days=order // 300 + int(10 * random()))
            yield (order, line, product() + 1, 1 + int(9 * random()), f"{1 + int(20000 * random()) / 100:.2f}",
                   shipped if random() < 0.95 else None)


def products(count):
    random = Random(24).random
    for key in range(1, count + 1):
        yield (key, int(40 * random() ** 2), f"product {LETTERS[key % 26]}{key}", f"{1 + int(50000 * random() ** 3) / 100:.2f}",
               "t" if random() < 0.02 else "f")


def logs(count):
    random = Random(25).random
    source = Zipf(random, 3000, 1.0)
    for key in range(1, count + 1):
        level = chance(random, {"info": 0.95, "warn": 0.045, "error": 0.0049, "fatal": 0.0001})
        yield (key, START + timedelta(seconds=37 * key), level, source(), int(5000 * random()) if random() < 0.9 else None,
               f"message {int(1000 * random())} of {key}")


def visits(count, buyers):
    random = Random(26).random
    for key in range(1, count + 1):
        yield (uuid_of(f"v{key}"), int(buyers * random()) + 1, f"{START + timedelta(seconds=61 * key)}+00",
               f"{int(10 ** (1 + 4 * random())) / 100:.2f}")


def tags(count):
    """Pairs of texts; the owners of few tags stand beside those of many."""
    random = Random(27).random
    owner, seen = Zipf(random, count // 10, 0.8), set()
    for _ in range(count):
        pair = f"owner-{owner():06}", f"tag-{int(400 * random()):03}"
        if pair not in seen:
            seen.add(pair)
            yield *pair, int(1000 * random()) / 8


def tables(scale):
    buyers, orders_count, goods = int(40_000 * scale), int(200_000 * scale), int(4_000 * scale)
    yield "customers", customers(buyers)
    yield "orders", orders(orders_count, buyers)
    yield "items", items(orders_count, goods)
    yield "products", products(goods)
    yield "logs", logs(orders_count)
    yield "visits", visits(int(100_000 * scale), buyers)
    yield "tags", tags(int(100_000 * scale))
    yield "nothing", ()
