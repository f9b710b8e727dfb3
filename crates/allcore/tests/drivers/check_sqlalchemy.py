"""SQLAlchemy core over psycopg and psycopg2: create, reflect, insert, select, against the server its environment names."""
from datetime import date, datetime, timezone
from decimal import Decimal

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship, selectinload

from common import DATABASE, HOST, PORT, USER, check, run, same


def engines():
    for driver in ("psycopg", "psycopg2"):
        url = sa.URL.create(f"postgresql+{driver}", username=USER, database=DATABASE, query={"host": HOST, "port": str(PORT)})
        engine = sa.create_engine(url)
        yield engine
        engine.dispose()


metadata = sa.MetaData()
authors = sa.Table(
    "authors", metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(50), nullable=False, unique=True),
    sa.Column("born", sa.Date),
    sa.Column("wealth", sa.Numeric(12, 2), server_default="0"),
    sa.CheckConstraint("wealth >= 0", name="not_poor"),
)
books = sa.Table(
    "books", metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    sa.Column("author", sa.ForeignKey("authors.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("added", sa.DateTime(timezone=True), server_default=sa.func.now()),
    sa.Column("tags", sa.ARRAY(sa.Text)),
    sa.Column("cover", sa.LargeBinary),
    sa.Column("here", sa.Boolean, default=True),
    sa.UniqueConstraint("author", "title", name="one_title"),
)


@check
def definitions_are_made_and_reflected():
    for engine in engines():
        metadata.drop_all(engine)
        metadata.create_all(engine)
        metadata.create_all(engine)
        same(engine.dialect.server_version_info[0] >= 15, True)
        inspector = sa.inspect(engine)
        assert {"authors", "books"} <= set(inspector.get_table_names())
        assert inspector.has_table("books") and not inspector.has_table("nowhere")
        assert "public" in inspector.get_schema_names()
        columns = {c["name"]: c for c in inspector.get_columns("books")}
        same(list(columns), ["id", "author", "title", "added", "tags", "cover", "here"])
        same(str(columns["id"]["type"]), "BIGINT")
        same(columns["title"]["nullable"], False)
        assert columns["id"]["identity"], columns["id"]
        assert "nextval" in {c["name"]: c for c in inspector.get_columns("authors")}["id"]["default"]
        same(inspector.get_pk_constraint("books")["constrained_columns"], ["id"])
        keys = inspector.get_foreign_keys("books")
        same([(k["constrained_columns"], k["referred_table"], k["options"]) for k in keys],
             [(["author"], "authors", {"ondelete": "CASCADE"})])
        same({i["name"]: i["unique"] for i in inspector.get_indexes("books")}, {"ix_books_author": False, "one_title": True})
        same([u["column_names"] for u in inspector.get_unique_constraints("books")], [["author", "title"]])
        same([k["name"] for k in inspector.get_check_constraints("authors")], ["not_poor"])
        same(inspector.get_view_names(), [])
        inspector.get_sequence_names()
        inspector.get_table_comment("books")
        same(inspector.get_enums(), [])
        again = sa.MetaData()
        again.reflect(engine, only=["authors", "books"])
        same(set(again.tables), {"authors", "books"})
        same([c.name for c in again.tables["books"].columns], [c.name for c in books.columns])
        same(next(iter(again.tables["books"].c.author.foreign_keys)).target_fullname, "authors.id")


@check
def rows_go_in_and_come_out():
    for engine in engines():
        metadata.drop_all(engine)
        metadata.create_all(engine)
        with engine.begin() as c:
            ada = c.execute(sa.insert(authors).values(name="Ada", born=date(1815, 12, 10))).inserted_primary_key[0]
            c.execute(sa.insert(authors), [{"name": f"a{n}", "wealth": Decimal(n)} for n in range(1000)])
            given = c.execute(sa.insert(books).returning(books.c.id, books.c.added),
                              [{"author": ada, "title": f"t{n}", "tags": ["x", str(n)], "cover": bytes([n])} for n in range(100)]).all()
            same(len({r.id for r in given}), 100)
            same(given[0].added.tzinfo is not None, True)
            query = (sa.select(authors.c.name, sa.func.count(books.c.id).label("n"))
                     .join_from(authors, books, isouter=True).group_by(authors.c.name)
                     .having(sa.func.count(books.c.id) > 0).order_by(sa.desc("n")).limit(5))
            same(c.execute(query).all(), [("Ada", 100)])
            same(c.scalar(sa.select(books.c.tags).where(books.c.title == "t3")), ["x", "3"])
            same(bytes(c.scalar(sa.select(books.c.cover).where(books.c.title == "t3"))), b"\x03")
            same(c.scalar(sa.select(sa.func.count()).select_from(books).where(sa.literal("7") == sa.any_(books.c.tags))), 1)
            same(c.execute(sa.update(authors).where(authors.c.name.in_(["a1", "a2"])).values(wealth=authors.c.wealth + 1)).rowcount, 2)
            c.execute(upsert(authors).values(name="Ada", wealth=5).on_conflict_do_update(index_elements=["name"], set_={"wealth": 5}))
            same(c.scalar(sa.select(authors.c.wealth).where(authors.c.id == ada)), Decimal("5.00"))
            try:
                with c.begin_nested():
                    c.execute(sa.insert(authors).values(name="Ada"))
                raise AssertionError("the name was taken")
            except sa.exc.IntegrityError as fault:
                same(getattr(fault.orig, "sqlstate", None) or fault.orig.pgcode, "23505")
            same(c.execute(sa.delete(authors).where(authors.c.id == ada)).rowcount, 1)
            same(c.scalar(sa.select(sa.func.count()).select_from(books)), 0)
            same(c.scalar(sa.select(sa.cast(sa.literal("12"), sa.Integer) + 1)), 13)
            same(c.scalar(sa.select(sa.extract("year", sa.literal(datetime(2020, 5, 6, tzinfo=timezone.utc))))), 2020)
            case = sa.case((authors.c.wealth > 500, "rich"), else_="not")
            same(c.execute(sa.select(case, sa.func.count()).group_by(case).order_by(case)).all(), [("not", 501), ("rich", 499)])
            numbered = sa.select(authors.c.name, sa.func.row_number().over(order_by=authors.c.wealth).label("r")).subquery()
            same(c.scalar(sa.select(numbered.c.r).where(numbered.c.name == "a999")), 1000)
        with engine.connect().execution_options(stream_results=True, yield_per=100) as c:
            same(sum(1 for _ in c.execute(sa.select(authors))), 1000)
        with engine.connect().execution_options(isolation_level="REPEATABLE READ") as c:
            same(c.scalar(sa.text("show transaction_isolation")), "repeatable read")


class Base(DeclarativeBase):
    pass


class Parent(Base):
    __tablename__ = "orm_parent"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    children: Mapped[list["Child"]] = relationship(back_populates="parent", cascade="all, delete-orphan")


class Child(Base):
    __tablename__ = "orm_child"
    id: Mapped[int] = mapped_column(primary_key=True)
    parent_id: Mapped[int] = mapped_column(sa.ForeignKey("orm_parent.id"))
    parent: Mapped[Parent] = relationship(back_populates="children")


@check
def the_orm_keeps_objects():
    for engine in engines():
        Base.metadata.drop_all(engine)
        Base.metadata.create_all(engine)
        with Session(engine) as session, session.begin():
            session.add_all(Parent(name=f"p{n}", children=[Child(), Child()]) for n in range(50))
        with Session(engine) as session:
            parents = session.scalars(sa.select(Parent).options(selectinload(Parent.children)).order_by(Parent.id)).all()
            same(sum(len(p.children) for p in parents), 100)
            session.delete(parents[0])
            parents[1].name = "renamed"
            session.commit()
            same(session.scalar(sa.select(sa.func.count()).select_from(Child)), 98)
            same(session.scalars(sa.select(Parent.name).order_by(Parent.id)).first(), "renamed")
            same(session.get(Parent, parents[1].id, with_for_update=True).name, "renamed")
        Base.metadata.drop_all(engine)


run()
