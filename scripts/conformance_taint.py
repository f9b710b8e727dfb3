"""The names that a statement leaves behind when one server alone carried it out.

Later uses of these names are not comparable.
"""

import re

NAME = re.compile(r'"((?:[^"]|"")+)"|([a-z_\x80-\U0010ffff][\w$]*)', re.I)
WORD = r'(?:"(?:[^"]|"")+"|[\w$]+)'
QUALIFIED = rf"{WORD}(?:\s*\.\s*{WORD})*"
CHANGES = re.compile(
    rf"""\s*(?:create(?:\s+or\s+replace)?(?:\s+(?:unique|temp|temporary|unlogged|global|local|trusted|constraint|recursive|default))*
    \s+(?P<kind>[a-z]+(?:\s+(?:view|class|family|wrapper|mapping|trigger|method|search\s+\w+|table|data\s+wrapper))?)
    (?:\s+concurrently)?(?:\s+if\s+not\s+exists)?
    |alter\s+(?P<altered>[a-z]+(?:\s+(?:view|class|family|search\s+\w+))?)(?:\s+if\s+exists)?(?:\s+only)?
    |drop\s+(?P<dropped>[a-z]+(?:\s+(?:view|class|family|search\s+\w+))?)(?:\s+concurrently)?(?:\s+if\s+exists)?
    |insert\s+into|update(?:\s+only)?|delete\s+from(?:\s+only)?|merge\s+into(?:\s+only)?|truncate(?:\s+table)?(?:\s+only)?
    |copy|refresh\s+materialized\s+view(?:\s+concurrently)?|reindex\s+\w+|prepare|declare|grant\s.*?\son|revoke\s.*?\son|comment\s+on\s+\w+
    |cluster|vacuum|analyze|execute|deallocate)\s+(?P<name>{QUALIFIED})(?P<more>(?:\s*,\s*{QUALIFIED})*)""",
    re.I | re.X | re.S)
INTO = re.compile(r"\binto\s+(?:temp\s+|temporary\s+|table\s+|unlogged\s+)*([\w$\".]+)", re.I)
SETS = re.compile(r"\s*(?:re)?set\s+(?:session\s+|local\s+)?(?P<name>[\w.]+)", re.I)
ROLE = re.compile(r"\s*(?P<re>re)?set\s+(?:session\s+|local\s+)*(?:role|authorization)\b\s*(?:to\s+|=\s*)?(?P<to>\S*)", re.I)
DEFINES = re.compile(r"\s*(?:create|alter|drop)\b", re.I)
# Other objects that a definition names: its new name, a table's parents, children and constraints.
OTHERS = re.compile(
    rf"\b(?:partition\s+of|attach\s+partition|detach\s+partition|on|rename\s+to|inherit|using\s+index|(?<!drop )constraint)\s+(?:if\s+not\s+exists\s+)?(?P<name>{QUALIFIED})",
    re.I)
RENAME = re.compile(rf"\brename\s+to\s+(?P<name>{QUALIFIED})", re.I)
PARENTS = re.compile(r"\binherits\s*\(([^)]*)\)", re.I)
RULE = re.compile(rf"\s*create\s+(?:or\s+replace\s+)?rule\b.*?\bto\s+(?P<name>{QUALIFIED})", re.I | re.S)
VIEW = re.compile(rf"\s*create\b[^(']*?\bview\s+(?P<name>{QUALIFIED})", re.I)
READS = re.compile(r"\s*(?:select|table|values|explain|declare)\b", re.I)
# Bodies of functions, rules and DO blocks, and CREATE SCHEMA, hold statements anywhere.
BODY = re.compile(r"\s*(?:do\b|create\s+(?:or\s+replace\s+)?(?:function|procedure|rule|schema)\b)", re.I)
BEGINS = re.compile(r"(?:^|;|\bas\s*\(|\bwith\b.*?\()\s*(?=\w)", re.I | re.S)
ANYWHERE = re.compile(r"\b(?=(?:create|alter|drop|insert|update|delete|truncate)\s)", re.I)
# Names that servers make from a table's: keys, indexes, checks, sequences, statistics.
MADE = re.compile(r"_(?:pkey|key|idx|fkey|excl|check|seq|not_null|stat|index)\d*$")
PUBLISHED = re.compile(r"cannot (?:update|delete from) table ")
ASKS_ROLE = re.compile(r"\b(?:current_user|session_user|has_\w+_privilege)\b", re.I)
# A call whose first argument may be an object that the function changes.
CALL = re.compile(r"\b(?P<function>\w+)\s*\(\s*'(?P<name>[a-z_][\w.]*)'", re.I)
# A cursor or prepared statement reads what its text names whenever it is used.
KEEPS = re.compile(rf"\s*(?:declare|prepare)\s+(?P<name>{QUALIFIED})", re.I)
# A table whose rows change with those of another one.
TABLE = re.compile(rf"\s*create\s+table\s+(?:if\s+not\s+exists\s+)?(?P<name>{QUALIFIED})", re.I)
CASCADES = re.compile(
    rf"\breferences\s+(?P<name>{QUALIFIED})\s*(?:\([^)]*\))?\s*(?:match\s+\w+\s+)?on\s+(?:update|delete)\s+(?:cascade|set)\b", re.I)
ENDS = re.compile(r"(?:commit|end)\b", re.I)
LITERAL = re.compile(r"'((?:[^']|'')*)'")
PATTERN = re.compile(r"\^?((?:\w|\\_)+?)(?:%|\.\*|\\d|_$|$)")
# A name of at most this many letters, or one that is a key word, is more often a column, an alias
# or grammar than an object. It counts only where an object can stand.
SHORT = 3
BEFORE_OBJECT = (
    r"(?:\b(?:from|join|into|update|table|only|on|exists|execute|prepare|declare|fetch|move|close|in|of|view|index|truncate|copy|type"
    r"|schema|references|like|lock|analyze|vacuum|cluster|relation|function|cursor|sequence|database|role|to|deallocate|name)\s+"
    r"|\binherits\s*\(\s*|::\s*|\bvacuum\s*\([^)]*\)\s*|'(?=\w+'::reg)|\btablename = ')\"?")
KIND = re.compile(
    r"\s*(?:create(?:\s+or\s+replace)?|alter|drop)\s+(operator\s+(?:class|family)|foreign\s+data\s+wrapper|access\s+method|event\s+trigger|\w+)",
    re.I)
# The relations of the catalog that list objects of a kind, where Allcore has none of the kind.
LISTS = {
    "function": ("pg_proc",), "procedure": ("pg_proc",), "aggregate": ("pg_proc", "pg_aggregate"), "operator": ("pg_operator",),
    "operator class": ("pg_opclass",), "operator family": ("pg_opfamily",), "conversion": ("pg_conversion",),
    "language": ("pg_language",), "foreign data wrapper": ("pg_foreign_data_wrapper",), "server": ("pg_foreign_server",),
    "statistics": ("pg_statistic_ext",), "publication": ("pg_publication",), "subscription": ("pg_subscription",),
    "access method": ("pg_am",), "role": ("pg_authid", "pg_roles"), "user": ("pg_authid", "pg_roles"),
    "rule": ("pg_rules",), "trigger": ("pg_trigger",),
    "policy": ("pg_policy", "pg_policies"), "view": ("pg_views", "views"), "event trigger": ("pg_event_trigger",), "cast": ("pg_cast",),
    "default": ("pg_default_acl",),
}


def words(text):
    """The names of a text, as the catalog would hold them."""
    return {quoted.replace('""', '"') if quoted else bare.lower() for quoted, bare in NAME.findall(text)}


def bare(name):
    """A qualified name without its schema."""
    return name.split(".")[-1].strip().strip('"').lower()


class Taint:
    """The names that are not comparable any more, and whether one server alone changed its role."""

    def __init__(self, keywords=frozenset()):
        self.names, self.role = set(), False
        # PostgreSQL's key words.
        self.keywords = keywords
        # The relations behind a view: a change of the view should have changed them.
        self.behind = {}
        # The tables that a table's rows follow by the actions of its foreign keys.
        self.parents = {}

    def add(self, name):
        name = bare(name)
        if name:
            self.names.add(name)

    def statement(self, text):
        """Notes the names that the statement should have changed."""
        role = ROLE.match(text)
        if role:
            self.role = True
        self.note_parents(text)
        for begin in (ANYWHERE if BODY.match(text) else BEGINS).finditer(text):
            changed = CHANGES.match(text, begin.end())
            if changed:
                for name in (changed["name"] + changed["more"]).split(","):
                    self.add(name)
            setting = SETS.match(text, begin.end())
            if setting:
                self.add(setting["name"])
        view = VIEW.match(text)
        if view:
            self.behind[bare(view["name"])] = words(text[view.end():]) - self.keywords
        for name in self.names & self.behind.keys():
            if not DEFINES.match(text) and not READS.match(text) and name in words(text):
                self.names |= self.behind[name]
        for found in INTO.finditer(text):
            self.add(found[1])
        for found in CALL.finditer(text):
            if found["function"].lower() in self.names | {"nextval", "cursor_to_xml"}:
                self.add(found["name"])
        kind = KIND.match(text)
        if kind:
            self.names.update(LISTS.get(" ".join(kind[1].lower().split()), ()))
        if DEFINES.match(text):
            for found in (*OTHERS.finditer(text), *RULE.finditer(text)):
                self.add(found["name"])
            for found in PARENTS.finditer(text):
                for name in found[1].split(","):
                    self.add(name)

    def note_parents(self, text):
        """Notes which tables the rows of a new table follow."""
        table = TABLE.match(text)
        if table:
            found = {bare(parent["name"]) for parent in CASCADES.finditer(text)}
            self.parents.setdefault(bare(table["name"]), set()).update(found)

    def same(self, text):
        """A statement that both carried out alike may end a difference of roles, or give another
        object a tainted name's place."""
        self.note_parents(text)
        keeps = KEEPS.match(text)
        if keeps and words(text[keeps.end():]) & self.names:
            self.add(keeps["name"])
        for found in RENAME.finditer(text):
            if words(text[:found.start()]) & self.names:
                self.add(found["name"])
        role = ROLE.match(text)
        if role and (role["re"] or role["to"].lower() in ("none", "default")):
            self.role = False

    def explains(self, text, expected, given):
        """Whether the statement, or an answer that is an error, uses what is not comparable."""
        errors, ours = ([error for _, _, _, error in results if error] for results in (expected, given))
        if self.role and (any(error[0] == "42501" for error in errors) or ASKS_ROLE.search(text)):
            return True
        # RAISE stands in functions alone.
        if "pg_proc" in self.names and any(error[0] == "P0001" for error in errors):
            return True
        if "pg_trigger" in self.names and ENDS.match(text):
            return True
        if "pg_publication" in self.names and any(PUBLISHED.match(error[1]) for error in errors):
            return True
        used, texts = words(text), [text]
        for error in errors + ours:
            texts.append(" ".join(part for part in (error[1], *error[3:]) if part))
            told = words(texts[-1])
            used |= told.union(*(name.split(".") for name in told))
        used |= set().union(*(self.parents.get(name, ()) for name in used))
        if any(len(name) > SHORT and name not in self.keywords or self.stands(name, texts) for name in used & self.names):
            return True
        return any(map(self.made, used)) or any(map(self.pattern, LITERAL.findall(text)))

    @staticmethod
    def stands(name, texts):
        """Whether the name stands where one of an object can: behind a word that says so, in a list
        of FROM, or called."""
        name = re.escape(name)
        place = re.compile(rf"{BEFORE_OBJECT}(?:\w+\.)?{name}\b|\bfrom\b[^();]*,\s*\"?{name}\b|\b{name}\"?\s*\(", re.I)
        return any(place.search(text) for text in texts)

    def rows(self, expected, given):
        """Whether the results differ only by rows of the catalog about objects that are not
        comparable."""
        def rest(results):
            return [(columns, sorted((row for row in rows if not self.about(row)), key=repr)) for columns, rows, _, _ in results]
        return rest(expected) == rest(given)

    def about(self, row):
        """Whether a row names an object that is not comparable."""
        texts = [value.split(".")[-1].strip('"') for value in row if isinstance(value, str)]
        return any(text in self.names or self.made(text) for text in texts)

    def made(self, word):
        """Whether the name was made from the name of a table or type that is not comparable."""
        if word.startswith("_") and word[1:] in self.names:
            return True
        if not MADE.search(word):
            return False
        parts = word.split("_")
        return any("_".join(parts[:count]) in self.names for count in range(1, len(parts)))

    def pattern(self, literal):
        """Whether a pattern of LIKE or of a regular expression looks for a name that is not
        comparable."""
        found = PATTERN.match(literal)
        if not found or found.end() == len(literal) and not literal.startswith("^") and "%" not in literal:
            return False
        prefix = found[1].replace("\\_", "_").lower()
        return any(name.startswith(prefix) for name in self.names)
