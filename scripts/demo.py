#!/usr/bin/env python3
"""`make demo`: the real pgbench against a release build of allcore, beside PostgreSQL where its server programs are.

Everything lives in a temporary folder and is stopped and removed at the end, Ctrl-C included.
"""
import glob, os, re, shutil, signal, socket, subprocess, sys, tempfile, time

SCALE = 10
CLIENTS = [1, 8, 64, 256]
SECONDS = 2
RUNS = [("select-only, prepared", "select-only", "prepared"),
        ("select-only, simple", "select-only", "simple"),
        ("tpcb-like, prepared", "tpcb-like", "prepared")]
HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TTY = sys.stdout.isatty()


def progress(done, total, text):
    if TTY:
        width = 30
        bar = "#" * (width * done // total)
        print(f"\r[{bar:<{width}}] {text:<58.58}", end="" if done < total else "\n", flush=True)
    else:
        print(f"[{done}/{total}] {text}", flush=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Arm:
    def __init__(self, name, host, port, process):
        self.name, self.host, self.port, self.process = name, host, port, process

    def environment(self):
        return dict(os.environ, PGHOST=self.host, PGPORT=str(self.port), PGUSER="postgres", PGDATABASE="postgres")

    def wait(self):
        for _ in range(300):
            if self.process.poll() is not None:
                sys.exit(f"demo: {self.name} did not start; see its words above")
            if subprocess.run(["psql", "-X", "-qc", "select 1"], env=self.environment(),
                              capture_output=True).returncode == 0:
                return
            time.sleep(0.1)
        sys.exit(f"demo: {self.name} does not answer")

    def pgbench(self, *arguments):
        done = subprocess.run(["pgbench", *arguments], env=self.environment(), capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"\ndemo: pgbench {' '.join(arguments)} failed on {self.name}\n{done.stdout}{done.stderr}")
        return done.stdout

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()


def start_allcore(folder):
    target = os.environ.get("CARGO_TARGET_DIR") or os.path.join(HERE, "target")
    binary = os.path.join(target, "release", "allcore")
    port = free_port()
    log = open(os.path.join(folder, "allcore.log"), "w")
    process = subprocess.Popen([binary, "serve", "--data", os.path.join(folder, "allcore"), "--socket-dir", folder,
                                "--listen", f"127.0.0.1:{port}", "--buffers", "1GiB"], stdout=log, stderr=log)
    return Arm("Allcore", folder, port, process)


def postgres_programs():
    homes = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda p: int(p.split("/")[4]))
    return homes[-1] if homes and os.path.exists(os.path.join(homes[-1], "initdb")) else None


def start_postgres(folder, programs):
    data, port = os.path.join(folder, "postgres"), free_port()
    os.mkdir(data)
    prefix = []
    if os.getuid() == 0:
        os.chmod(folder, 0o755)
        shutil.chown(data, "postgres")
        sockets = os.path.join(folder, "pgsocket")
        os.mkdir(sockets)
        shutil.chown(sockets, "postgres")
        prefix = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]
    else:
        sockets = folder
    subprocess.run([*prefix, f"{programs}/initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-instructions"],
                   check=True, capture_output=True)
    settings = {"listen_addresses": "", "unix_socket_directories": sockets, "port": port, "shared_buffers": "1GB",
                "max_connections": 400, "max_wal_size": "8GB", "checkpoint_timeout": "30min"}
    flags = [x for name, value in settings.items() for x in ("-c", f"{name}={value}")]
    log = open(os.path.join(folder, "postgres.log"), "w")
    process = subprocess.Popen([*prefix, f"{programs}/postgres", "-D", data, *flags], stdout=log, stderr=log)
    version = subprocess.run([f"{programs}/postgres", "--version"], capture_output=True, text=True).stdout.split()[2]
    return Arm(f"PostgreSQL {version.split('.')[0]}", sockets, port, process)


def main():
    folder = tempfile.mkdtemp(prefix="allcore-demo-")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    arms = []
    try:
        arms.append(start_allcore(folder))
        programs = postgres_programs()
        if programs:
            arms.append(start_postgres(folder, programs))
        else:
            print("PostgreSQL's server programs are not installed here: Allcore alone")
        for arm in arms:
            arm.wait()
        total, done = len(arms) * (1 + len(RUNS) * len(CLIENTS)), 0
        seen = {}
        for arm in arms:
            progress(done, total, f"{arm.name}: pgbench -i -s {SCALE}")
            begun = time.monotonic()
            arm.pgbench("-i", "-s", str(SCALE), "-q")
            seen[arm.name, "load"] = time.monotonic() - begun
            done += 1
        for title, script, mode in RUNS:
            for clients in CLIENTS:
                for arm in arms:
                    progress(done, total, f"{arm.name}: {title}, {clients} clients")
                    said = arm.pgbench("-n", "-b", script, "-M", mode, "-c", str(clients), "-j", str(min(clients, 2)),
                                       "-T", str(SECONDS))
                    # None where the time was over before all clients had connected.
                    found = re.search(r"^tps = ([0-9.]+)", said, re.M)
                    seen[arm.name, title, clients] = float(found[1]) if found else None
                    done += 1
        progress(total, total, "done")
        table(arms, seen)
    except KeyboardInterrupt:
        print("\ndemo: stopped")
        sys.exit(130)
    finally:
        for arm in arms:
            arm.stop()
        shutil.rmtree(folder, ignore_errors=True)


def table(arms, seen):
    ratio = len(arms) > 1
    print(f"\npgbench, scale {SCALE}, {SECONDS} s a point, transactions per second; both servers durable\n")
    print(f"{'workload':<24}{'clients':>8}" + "".join(f"{a.name:>15}" for a in arms) + ("   ratio" if ratio else ""))
    for title, _, _ in RUNS:
        for clients in CLIENTS:
            values = [seen[a.name, title, clients] for a in arms]
            print(f"{title:<24}{clients:>8}" + "".join(f"{'-':>15}" if v is None else f"{v:>15,.0f}" for v in values)
                  + (f"{values[0] / values[1]:>8.1f}" if ratio and all(values) else ""))
    values = [seen[a.name, "load"] for a in arms]
    print(f"{f'pgbench -i -s {SCALE}':<24}{'':>8}" + "".join(f"{v:>13.1f} s" for v in values)
          + (f"{values[1] / values[0]:>8.1f}" if ratio else ""))
    if None in seen.values():
        print("\n-: not all clients had connected when the time was over")


if __name__ == "__main__":
    main()
