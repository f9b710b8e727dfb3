#!/bin/sh
# Compiles a crate of the workspace with clippy's driver, and warnings are errors: cargo calls it
# with the compiler first. Commands with this wrapper share what they check, so the documentation
# needs no second check of the crates.
rustc=$1
shift
exec clippy-driver "$rustc" "$@" -D warnings
