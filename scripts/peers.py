"""The parts that these scripts share: paths, a line of progress, a command."""
import os, socket, subprocess, sys, time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.environ.get("CARGO_TARGET_DIR") or os.path.join(HERE, "target")


def say(text):
    """A line of progress, apart from the tables."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def run(*command, **keywords):
    """The output of a command; ends the script where it fails, with all that it said."""
    done = subprocess.run(command, capture_output=True, text=True, **keywords)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed\n{done.stdout}{done.stderr}")
    return done.stdout


def free_port():
    """A port of the loopback interface that nothing listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
