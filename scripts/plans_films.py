"""Films, people, companies and keywords in 17 tables, for joins of many relations.

Counts are skewed by Zipf's law: a few people, keywords and companies stand in most rows. Columns
are correlated. A company makes films of its own country, and a kind of film has its years and its
length. Genres have keywords of their own, and the votes follow the rating.
"""

from random import Random

from plans_data import Zipf

KINDS = ["film", "short", "series", "episode", "documentary", "game", "video"]
SHARES = [0.35, 0.12, 0.05, 0.4, 0.05, 0.01, 0.02]
COUNTRIES = ("us gb fr de it es jp in cn kr se dk no fi pl cz ru br ar mx ca au nz za ng eg tr gr pt ie").split()
GENRES = ("drama comedy thriller romance action crime horror adventure family fantasy mystery animation history music war "
          "biography sport western musical noir news reality talk").split()
COMPANY_ROLES = ["production", "distribution", "effects", "sound"]
ROLES = ["actor", "actress", "director", "writer", "producer", "composer", "editor", "camera", "stunts", "guest"]
INFO_KINDS = ["budget", "gross", "release", "language", "colour", "location", "runtime", "certificate", "rating", "votes",
              "plot", "tagline"]
LINK_KINDS = ["follows", "remake of", "version of", "refers to", "spin-off of", "edited into"]
SYLLABLES = "ba ke mi no ru ta le si do va ra ne gi lo pu sha ter von mar del".split()


def pick(random, options):
    return options[int(random() * len(options))]


def name(random, parts):
    return "".join(pick(random, SYLLABLES) for _ in range(parts)).capitalize()


class Films:
    """The counts of a scale, and the rows of each table."""

    def __init__(self, scale):
        self.films, self.people = int(60_000 * scale), int(80_000 * scale)
        self.companies, self.keywords = int(6_000 * scale), int(5_000 * scale)
        random = Random(51).random
        country = Zipf(random, len(COUNTRIES), 1.3)
        self.company_country = [country() for _ in range(self.companies)]
        self.film = [self.drawn(random, country) for _ in range(self.films)]

    @staticmethod
    def drawn(random, country):
        """(kind, country, year, genre) of a film."""
        point, kind = random(), 0
        while point > SHARES[kind] and kind < len(KINDS) - 1:
            point -= SHARES[kind]
            kind += 1
        # Episodes and games are young, shorts are old.
        first = {1: 1900, 3: 1970, 5: 1985}.get(kind, 1930)
        year = 2025 - int((2025 - first) * random() ** 2)
        return kind, country(), year, min(int(len(GENRES) * random() ** 2.5), len(GENRES) - 1)

    def film_rows(self):
        random = Random(52).random
        for number, (kind, country, year, _) in enumerate(self.film, 1):
            rating = 10 - int(60 * random() ** 1.5) / 10
            votes = int(10 ** (1 + 5 * random() ** 2 * rating / 10))
            length = {1: 12, 3: 42, 5: None}.get(kind, 95)
            yield (number, f"{name(random, 3)} {name(random, 2)}", kind + 1, country + 1,
                   year if random() > 0.03 else None, length and length + int(random() * 30), f"{rating:.1f}", votes)

    def person_rows(self):
        random = Random(53).random
        country = Zipf(random, len(COUNTRIES), 1.1)
        for number in range(1, self.people + 1):
            yield (number, f"{name(random, 3)}, {name(random, 2)}", "f" if random() < 0.4 else "m",
                   1900 + int(110 * random() ** 0.7) if random() > 0.4 else None, country() + 1)

    def genre_rows(self):
        random = Random(54).random
        for number, (_, _, _, genre) in enumerate(self.film, 1):
            chosen = {genre}
            while random() < 0.5:
                chosen.add(int(random() * len(GENRES)))
            yield from ((number, one + 1) for one in sorted(chosen))

    def company_rows(self):
        random = Random(55).random
        for number, country in enumerate(self.company_country, 1):
            yield number, f"{name(random, 2)} {pick(random, ['Pictures', 'Films', 'Studio', 'Media', 'TV'])}", country + 1

    def film_company_rows(self):
        """The companies of a film; nine of ten are of the film's country."""
        random = Random(56).random
        at_home = [[] for _ in COUNTRIES]
        for number, country in enumerate(self.company_country, 1):
            at_home[country].append(number)
        key = 0
        for number, (_, country, _, _) in enumerate(self.film, 1):
            for _ in range(int(4 * random() ** 1.5)):
                key += 1
                near = at_home[country] if random() < 0.9 and at_home[country] else range(1, self.companies + 1)
                company = near[int(len(near) * random() ** 3)]
                yield key, number, company, int(4 * random() ** 2) + 1, "co-production" if random() < 0.1 else None

    def credit_rows(self):
        random = Random(57).random
        person = Zipf(random, self.people, 0.8)
        key = 0
        for number, (kind, _, _, _) in enumerate(self.film, 1):
            for place in range(2 + int((6 if kind in (1, 3) else 24) * random() ** 2)):
                key += 1
                role = int(2 * random()) if place < 5 else int(len(ROLES) * random())
                yield key, number, person() + 1, role + 1, place if role < 2 else None, "voice" if random() < 0.05 else None

    def keyword_rows(self):
        random = Random(58).random
        for number in range(1, self.keywords + 1):
            yield number, f"{name(random, 2).lower()}-{GENRES[number % len(GENRES)]}-{number}"

    def film_keyword_rows(self):
        """The keywords of a film; most of them are its genre's."""
        random = Random(59).random
        word = Zipf(random, self.keywords // len(GENRES), 1.0)
        for number, (kind, _, _, genre) in enumerate(self.film, 1):
            chosen = set()
            for _ in range(int((2 if kind == 3 else 10) * random() ** 1.5)):
                field = genre if random() < 0.8 else int(random() * len(GENRES))
                chosen.add(max(word() * len(GENRES) + field, 1))
            yield from ((number, one) for one in sorted(chosen))

    def info_rows(self):
        random = Random(60).random
        key = 0
        for number, (kind, country, year, genre) in enumerate(self.film, 1):
            infos = [(3, f"{COUNTRIES[country]}: {year}"), (4, f"language of {COUNTRIES[country]}")]
            if kind == 0 and random() < 0.3:
                infos.append((1, str(int(10 ** (4 + 4 * random())))))
            if random() < 0.2:
                infos.append((6, f"{name(random, 2)}, {COUNTRIES[country]}"))
            if year < 1965 or random() < 0.02:
                infos.append((5, "black and white"))
            if random() < 0.4:
                infos.append((11, f"a {GENRES[genre]} of {name(random, 3)}"))
            for info_kind, value in infos:
                key += 1
                yield key, number, info_kind, value

    def link_rows(self):
        random = Random(61).random
        for key in range(1, self.films // 12 + 1):
            one, other = int(self.films * random() ** 2) + 1, int(self.films * random() ** 2) + 1
            yield key, one, other, int(len(LINK_KINDS) * random() ** 2) + 1


def numbered(names):
    return ((number, one) for number, one in enumerate(names, 1))


def tables(scale):
    films = Films(scale)
    yield "kinds", numbered(KINDS)
    yield "countries", numbered(COUNTRIES)
    yield "genres", numbered(GENRES)
    yield "company_roles", numbered(COMPANY_ROLES)
    yield "roles", numbered(ROLES)
    yield "info_kinds", numbered(INFO_KINDS)
    yield "link_kinds", numbered(LINK_KINDS)
    yield "films", films.film_rows()
    yield "people", films.person_rows()
    yield "film_genres", films.genre_rows()
    yield "companies", films.company_rows()
    yield "film_companies", films.film_company_rows()
    yield "credits", films.credit_rows()
    yield "keywords", films.keyword_rows()
    yield "film_keywords", films.film_keyword_rows()
    yield "film_infos", films.info_rows()
    yield "film_links", films.link_rows()
