"""TPC-H's eight tables at a scale factor, with the keys and distributions its queries depend on.

Keys, ranges and dependencies between columns follow the public specification. Order keys are
sparse, a third of the customers has no orders, a part has four suppliers. Dates follow each other,
and prices are computed from keys. Comments are drawn from a short vocabulary. The phrases that
queries look for stand in the share of rows that the specification gives them.
"""

from datetime import date, timedelta
from functools import cache
from random import Random

from plans_data import chance

FIRST_DAY = date(1992, 1, 1)
LAST_ORDER = (date(1998, 8, 2) - FIRST_DAY).days
TODAY = (date(1995, 6, 17) - FIRST_DAY).days
DAYS = [(FIRST_DAY + timedelta(days)).isoformat() for days in range(2600)]
REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
NATIONS = [
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3),
    ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4),
    ("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4),
    ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1)]
SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD"]
PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
INSTRUCTIONS = ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"]
MODES = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]
TYPES = [["STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"],
         ["ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"],
         ["TIN", "NICKEL", "BRASS", "STEEL", "COPPER"]]
CONTAINERS = [["SM", "LG", "MED", "JUMBO", "WRAP"], ["CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"]]
# Names of parts take five of 92 colours: forest and green are the ones that queries ask for.
COLOURS = ["forest", "green"] + [
    shade + colour for shade in ("", "dark", "pale", "deep", "pure", "soft")
    for colour in ("red", "blue", "yellow", "orange", "violet", "brown", "grey", "pink", "white", "black", "olive", "teal",
                   "amber", "coral", "ivory")]
WORDS = ("carriers bundles letters invoices totals routes depots offers quickly slowly boldly daily along above near "
         "across final even ironic regular silent express pending blithe furious careful").split()


def pick(random, options):
    return options[int(random() * len(options))]


@cache
def texts(words):
    """The comments of a length, made once: a draw of each word would take most of the time."""
    random = Random(words).random
    return [" ".join(pick(random, WORDS) for _ in range(words)) for _ in range(2000)]


def text(random, words):
    return pick(random, texts(words))


def between(random, low, high):
    return low + int(random() * (high - low + 1))


def money(cents):
    sign, cents = ("-", -cents) if cents < 0 else ("", cents)
    return f"{sign}{cents // 100}.{cents % 100:02}"


def phone(random, nation):
    return f"{nation + 10}-{between(random, 100, 999)}-{between(random, 100, 999)}-{between(random, 1000, 9999)}"


def price(part):
    """A part's price in cents."""
    return 90000 + part // 10 % 20001 + 100 * (part % 1000)


def supplier_of(part, which, suppliers):
    """The key of one of a part's four suppliers."""
    return (part + which * (suppliers // 4 + (part - 1) // suppliers)) % suppliers + 1


def supplier(random, count):
    for key in range(1, count + 1):
        nation = between(random, 0, 24)
        comment = text(random, 8)
        # Five suppliers of 10,000 have complaints, and five recommendations.
        if key % 2000 == 1:
            comment += " Customer late Complaints"
        elif key % 2000 == 2:
            comment += " Customer best Recommends"
        yield (key, f"Supplier#{key:09}", text(random, 2), nation, phone(random, nation),
               money(between(random, -99999, 999999)), comment)


def part(random, count):
    for key in range(1, count + 1):
        maker = between(random, 1, 5)
        name = " ".join(pick(random, COLOURS) for _ in range(5))
        yield (key, name, f"Manufacturer#{maker}", f"Brand#{maker}{between(random, 1, 5)}",
               " ".join(pick(random, syllables) for syllables in TYPES), between(random, 1, 50),
               " ".join(pick(random, syllables) for syllables in CONTAINERS), money(price(key)), text(random, 2))


def partsupp(random, parts, suppliers):
    for key in range(1, parts + 1):
        for which in range(4):
            yield (key, supplier_of(key, which, suppliers), between(random, 1, 9999),
                   money(between(random, 100, 100000)), text(random, 12))


def customer(random, count):
    for key in range(1, count + 1):
        nation = between(random, 0, 24)
        yield (key, f"Customer#{key:09}", text(random, 3), nation, phone(random, nation),
               money(between(random, -99999, 999999)), pick(random, SEGMENTS), text(random, 9))


class Orders:
    """Orders and their items: the second table repeats the draws of the first."""

    def __init__(self, counts):
        self.customers, self.parts, self.suppliers, self.count, self.clerks = counts

    def drawn(self):
        """(key, day, items) of each order; an item is (part, supplier, quantity, price, discount,
        tax, ship, commit, receipt)."""
        random = Random(41).random
        for number in range(self.count):
            # The first 8 of 32 keys are used.
            key = number // 8 * 32 + number % 8 + 1
            day = between(random, 0, LAST_ORDER)
            items = []
            for _ in range(between(random, 1, 7)):
                bought = between(random, 1, self.parts)
                quantity = between(random, 1, 50)
                ship = day + between(random, 1, 121)
                items.append((bought, supplier_of(bought, int(random() * 4), self.suppliers), quantity,
                              quantity * price(bought), int(random() * 11), int(random() * 9), ship,
                              day + between(random, 30, 90), ship + between(random, 1, 30)))
            yield key, day, items

    def orders(self):
        random = Random(42).random
        for key, day, items in self.drawn():
            buyer = between(random, 1, self.customers)
            while buyer % 3 == 0:
                buyer = between(random, 1, self.customers)
            total = sum(cents * (100 + tax) * (100 - off) for _, _, _, cents, off, tax, _, _, _ in items)
            shipped = sum(item[6] <= TODAY for item in items)
            status = "F" if shipped == len(items) else "P" if shipped else "O"
            comment = text(random, 6)
            if random() < 0.011:
                comment += " special packages requests"
            yield (key, buyer, status, money((total + 5000) // 10000), DAYS[day], pick(random, PRIORITIES),
                   f"Clerk#{between(random, 1, self.clerks):09}", 0, comment)

    def lineitem(self):
        random = Random(43).random
        for key, _, items in self.drawn():
            for number, (bought, seller, quantity, cents, off, tax, ship, commit, receipt) in enumerate(items, 1):
                flag = chance(random, {"R": 0.5, "A": 0.5}) if receipt <= TODAY else "N"
                yield (key, bought, seller, number, quantity, money(cents), f"0.{off:02}", f"0.{tax:02}", flag,
                       "O" if ship > TODAY else "F", DAYS[ship], DAYS[commit], DAYS[receipt],
                       pick(random, INSTRUCTIONS), pick(random, MODES), text(random, 3))


def tables(scale):
    suppliers, parts, customers = (int(scale * count) for count in (10_000, 200_000, 150_000))
    orders = Orders((customers, parts, suppliers, int(scale * 1_500_000), max(int(scale * 1000), 1)))
    yield "region", ((key, name, text(Random(key).random, 5)) for key, name in enumerate(REGIONS))
    yield "nation", ((key, name, region, text(Random(key).random, 5)) for key, (name, region) in enumerate(NATIONS))
    yield "supplier", supplier(Random(11).random, suppliers)
    yield "part", part(Random(12).random, parts)
    yield "partsupp", partsupp(Random(13).random, parts, suppliers)
    yield "customer", customer(Random(14).random, customers)
    yield "orders", orders.orders()
    yield "lineitem", orders.lineitem()
