"""Measures a statement of scripts/plans.py on both servers in turn, and compares the answers."""

import statistics
import time
from dataclasses import dataclass, field

import fuzz
from plans_servers import Refused, Stuck, execution, simple
from wire import Lost

# Seconds of executions of a short statement that make one round, and the most of them.
ROUND, MOST = 0.02, 100
CANCELLED = "57014"
FAULTS = {Stuck: "stuck", Refused: "error"}


@dataclass
class Side:
    """The times of a server in seconds: the client's of each execution, the CPU's of each round."""

    elapsed: list = field(default_factory=list)
    cpu: list = field(default_factory=list)
    over: bool = False
    # The warm execution's, which no median counts.
    first: float = 0.0

    @property
    def median(self):
        return statistics.median(self.elapsed) if self.elapsed else None

    @property
    def work(self):
        return statistics.median(self.cpu) if self.cpu else None


@dataclass
class Result:
    """A statement's times, and why it fails where it does."""

    statement: object
    limit: float
    sides: list = field(default_factory=lambda: [Side(), Side()])
    # "", "differs", "error", "lost" or "stuck"; the others compare nothing.
    fault: str = ""
    note: str = ""

    def time(self, number):
        """A server's median, or the limit where the server did not answer within it."""
        side = self.sides[number]
        return self.limit if side.over else side.median

    @property
    def ratio(self):
        """Allcore's elapsed time over PostgreSQL's."""
        times = self.time(0), self.time(1)
        return times[1] / times[0] if all(times) else None

    @property
    def work_ratio(self):
        """The same of the CPU time; None where a server did not answer within the limit."""
        works = [side.work for side in self.sides]
        return works[1] / works[0] if all(works) and not any(side.over for side in self.sides) else None

    @property
    def judged(self):
        """The ratio that is compared with the bar.

        A warm read waits for a core alone. Where its elapsed time is over the bar, its CPU time
        decides.
        """
        ratio, work = self.ratio, self.work_ratio
        if ratio and work and ratio > self.statement.bar and self.statement.reads:
            return min(ratio, work)
        return ratio

    @property
    def missed(self):
        return self.judged is not None and self.judged > self.statement.bar


class Measurement:
    """One statement on both servers, PostgreSQL first."""

    def __init__(self, statement, servers, options):
        self.statement, self.servers, self.options = statement, servers, options
        self.result = Result(statement, options.limit)

    def run(self):
        """The result; servers keep their sessions for the next statement."""
        expected = self.guarded(0, self.first)
        given = self.guarded(1, self.first)
        if not self.result.fault:
            self.compare(expected, given)
        if not self.result.fault:
            self.rounds()
        self.finish()
        return self.result

    def guarded(self, number, work, *arguments):
        """Does some work with a server. Allcore starts anew where it is gone; without PostgreSQL
        there is nothing to compare with."""
        try:
            return work(number, *arguments)
        except (Lost, OSError, Stuck, Refused) as error:
            if number == 0:
                raise
            self.result.fault, self.result.note = FAULTS.get(type(error), "lost"), repr(error)
            if isinstance(error, Refused):
                self.servers[1].session.timed(simple("rollback"))
            else:
                self.servers[1].again()
            return None

    def first(self, number):
        """Sets the session up and executes the statement once."""
        statement, session = self.statement, self.servers[number].session
        if statement.parameters:
            session.do(f"set plan_cache_mode = {f'force_{statement.plan}_plan' if statement.plan else 'auto'}")
        for text in statement.setup:
            session.do(text)
        if statement.parameters:
            session.prepare(statement.text)
        return self.round(number, 1, warm=True)

    def finish(self):
        """Removes what the statement made; after a fault, part of it may not be there."""
        texts = self.statement.cleanup
        if self.result.fault:
            texts = self.statement.after + texts
        for server in self.servers:
            for text in texts:
                server.session.timed(simple(text))

    def round(self, number, count, warm=False):
        """Executes the statement `count` times; gives the last answer, and those of the checks."""
        statement, server, side = self.statement, self.servers[number], self.result.sides[number]
        session = server.session
        message = execution(statement.parameters) if statement.parameters else simple(statement.text)
        for text in statement.before:
            session.do(text)
        session.limited(self.options.limit)
        took, begun = [], server.cpu()
        for _ in range(count):
            seconds, answer = session.timed(message)
            took.append(seconds)
        work = (server.cpu() - begun) / count
        session.limited(0)
        checked = [session.timed(simple(text))[1] for text in statement.check]
        for text in statement.after:
            session.do(text)
        if answer[3] and answer[3][0] == CANCELLED:
            side.over = True
        elif warm:
            side.first = took[0]
        elif answer[3]:
            raise Refused(f"{answer[3][0]} {answer[3][1]}, but not in the first round")
        else:
            side.elapsed += took
            side.cpu.append(work)
        return [answer, *checked]

    def compare(self, expected, given):
        result = self.result
        if any(side.over for side in result.sides):
            return
        for ours, theirs in zip(given, expected):
            error = ours[3] or theirs[3]
            if error:
                result.fault = "error"
                result.note = "; ".join(f"{server.name}: {answer[3][0]} {answer[3][1]}" for server, answer in
                                        zip(self.servers, (theirs, ours)) if answer[3])
                return
            if fuzz.compared(theirs, self.statement) != fuzz.compared(ours, self.statement):
                result.fault = "differs"
                result.note = f"--- PostgreSQL\n{fuzz.show(theirs)}\n--- Allcore\n{fuzz.show(ours)}"
                return

    def rounds(self):
        """The servers take turns; each begins every other round."""
        sides = self.result.sides
        counts = [0 if side.over else self.count(side.first) for side in sides]
        begun = time.monotonic()
        for number in range(self.options.rounds):
            for one in (0, 1) if number % 2 == 0 else (1, 0):
                if counts[one] and not self.result.fault:
                    self.guarded(one, self.round, counts[one])
            if time.monotonic() - begun > self.options.budget:
                break

    def count(self, first):
        """The executions of a round."""
        return max(1, min(MOST, int(ROUND / first))) if self.statement.reads else 1

    def plans(self):
        """EXPLAIN of both servers, for a person to read."""
        texts = []
        for server in self.servers:
            rows = server.session.timed(simple(f"explain {self.statement.text}"))[1][1]
            texts.append(f"--- {server.name}\n" + "\n".join(str(row[0]) for row in rows))
        return "\n".join(texts)
