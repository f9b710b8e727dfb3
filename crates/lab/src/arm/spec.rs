//! Arms as the command line names them. `NAME=URL` is a running server. The lab itself starts
//! `NAME=serve:--cores 2`, `NAME=serve-postgres:shared_buffers=1GB fsync=on` and
//! `NAME=serve-mariadb:innodb_buffer_pool_size=1G`. `vary` makes several arms of one, which differ
//! in one setting only. Applied twice, it makes all combinations of both settings.

use super::{Dialect, Target, url};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    pub name: String,
    /// Settings in which this arm differs from the arms that `vary` made beside it.
    varied: Vec<String>,
    pub source: Source,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A server that runs already.
    Runs(Target),
    /// The lab starts it, with an empty data folder, and stops it.
    Own(Recipe),
}

/// Settings for the lab: the folder of a server's programs, the folder of its data folder, and the
/// NUMA node on which it runs.
pub const PLACES: [&str; 3] = ["bin", "in", "node"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    pub kind: Kind,
    /// Its settings as name and value, including [`PLACES`]; one without a value is a switch.
    pub settings: Vec<(String, Option<String>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `serve` of the running executable, or of the same program in another folder.
    Serve,
    /// PostgreSQL, from PATH or the usual places.
    Postgres,
    /// MariaDB, likewise.
    MariaDb,
}

impl Kind {
    fn of(word: &str) -> Option<Self> {
        match word {
            "serve" => Some(Self::Serve),
            "serve-postgres" => Some(Self::Postgres),
            "serve-mariadb" => Some(Self::MariaDb),
            _ => None,
        }
    }

    /// Refuses a setting that would move the server's data or its socket: the lab sets these.
    fn takes(self, setting: &str) -> Result<(), String> {
        let own = match self {
            Self::Serve => "data socket-dir listen",
            Self::Postgres => {
                "port listen-addresses unix-socket-directories data-directory config-file external-pid-file"
            }
            Self::MariaDb => "port socket datadir pid-file bind-address skip-networking defaults-file",
        };
        let name = setting.to_ascii_lowercase().replace('_', "-");
        match own.split(' ').any(|own| own == name) {
            true => {
                Err(format!("{setting} is set by the lab, in a folder of the server's own: leave it out"))
            }
            false => Ok(()),
        }
    }
}

impl Spec {
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, source) = match text.split_once('=') {
            Some((name, source)) if !name.is_empty() && !name.contains([':', '/']) => (name, source),
            _ => {
                return Err(format!(
                    "{}: an arm is written NAME=URL, as in pg=postgres:///bench?host=/tmp",
                    url::shown(text)
                ));
            }
        };
        let (word, settings) = source.split_once(':').unwrap_or((source, ""));
        let source = match Kind::of(word) {
            Some(kind) => {
                let settings =
                    parse_settings(kind, settings).map_err(|error| format!("arm {name}: {error}"))?;
                Source::Own(Recipe { kind, settings })
            }
            None if source.contains("://") => Source::Runs(url::parse(name, source)?),
            None => {
                return Err(format!(
                    "arm {name}: write a URL (postgres://..., mysql://...), or serve, serve-postgres or serve-mariadb \
                     for a server that the lab starts"
                ));
            }
        };
        Ok(Self { name: name.to_owned(), varied: Vec::new(), source })
    }

    pub fn dialect(&self) -> Dialect {
        match &self.source {
            Source::Runs(target) => target.dialect,
            Source::Own(Recipe { kind: Kind::MariaDb, .. }) => Dialect::Mysql,
            Source::Own(_) => Dialect::Postgres,
        }
    }
}

/// Whether it is one of [`PLACES`] with its value.
fn is_place(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| PLACES.contains(&name))
}

fn parse_settings(kind: Kind, text: &str) -> Result<Vec<(String, Option<String>)>, String> {
    let words = shlex::split(text).ok_or_else(|| format!("a quotation mark is not closed in: {text}"))?;
    let mut settings: Vec<(String, Option<String>)> = Vec::new();
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let bare = match (kind, word.strip_prefix("--")) {
            (Kind::Serve, None) if !is_place(&word) => {
                return Err(format!(
                    "serve takes options that begin with --, bin=FOLDER, in=FOLDER and node=NUMBER, not {word}"
                ));
            }
            (_, bare) => bare.unwrap_or(&word),
        };
        let setting = match bare.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None if kind == Kind::Serve => (bare.to_owned(), words.next_if(|value| !value.starts_with("--"))),
            None if kind == Kind::MariaDb => (bare.to_owned(), None),
            None => return Err(format!("{word} has no value; settings are written name=value")),
        };
        kind.takes(&setting.0)?;
        if PLACES.contains(&setting.0.as_str()) && setting.1.as_deref().is_none_or(str::is_empty) {
            let kind = if setting.0 == "node" { "number" } else { "folder" };
            return Err(format!("{word} names no {kind}: write {}={}", setting.0, kind.to_uppercase()));
        }
        settings.push(setting);
    }
    Ok(settings)
}

/// Makes several arms of each arm that the lab starts, which differ in one setting only:
/// `setting=a,b,c`. They are named `ARM setting=a` and stand where the arm stood. Arms that `vary`
/// made become several each.
pub fn vary(specs: &[Spec], text: &str) -> Result<Vec<Spec>, String> {
    let malformed = || format!("{text}: what varies is written setting=a,b,c");
    let (setting, values) = text.split_once('=').ok_or_else(malformed)?;
    let setting = setting.trim_start_matches("--");
    let values: Vec<&str> = values.split(',').collect();
    if setting.is_empty() || values.iter().any(|value| value.is_empty()) {
        return Err(malformed());
    }
    if !specs.iter().any(|spec| matches!(spec.source, Source::Own(_))) {
        return Err(format!(
            "{text}: only servers that the lab starts can vary in a setting; name one, as in pg=serve-postgres"
        ));
    }
    let expand = |spec: &Spec| match &spec.source {
        Source::Own(_) if spec.varied.iter().any(|other| other == setting) => {
            Err(format!("{text}: {setting} varies already: name all its values at once"))
        }
        Source::Own(recipe) => {
            recipe.kind.takes(setting).map_err(|error| format!("{text}: {error}"))?;
            Ok(values.iter().map(|value| with(spec, recipe, setting, value)).collect())
        }
        Source::Runs(_) => Ok(vec![spec.clone()]),
    };
    let all: Vec<Vec<Spec>> = specs.iter().map(expand).collect::<Result<_, String>>()?;
    Ok(all.concat())
}

fn with(spec: &Spec, recipe: &Recipe, setting: &str, value: &str) -> Spec {
    let mut recipe = recipe.clone();
    recipe.settings.retain(|(name, _)| name != setting);
    recipe.settings.push((setting.to_owned(), Some(value.to_owned())));
    let mut varied = spec.varied.clone();
    varied.push(setting.to_owned());
    let name = format!("{} {setting}={value}", spec.name);
    Spec { name, varied, source: Source::Own(recipe) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::golden_cases;

    /// An arm's name, and the kind and settings of its server or the running server.
    fn shown(spec: &Spec) -> String {
        match &spec.source {
            Source::Own(Recipe { kind, settings }) => format!("{}: {kind:?} {settings:?}", spec.name),
            Source::Runs(target) => format!("{}: {target:?}", spec.name),
        }
    }

    #[test]
    fn arms_are_read_with_their_settings() {
        let arms = [
            "a=serve",
            "a=serve:--cores 2 --buffers=1GiB --quiet --auth trust",
            "a=serve:bin=/old --cores 2 in=/disk node=1",
            "pg=serve-postgres:shared_buffers=1GB 'log_line_prefix=a b'",
            "m=serve-mariadb:skip-log-bin",
            "u=mysql://u@h/d",
        ];
        golden_cases("arms_read", arms.map(|text| (text, vec![shown(&Spec::parse(text).unwrap())])));
        let refused = [
            "postgres://u:secret@x/y",
            "a=serve:--data x",
            "a=serve-postgres:port=6000",
            "a=serve-postgres:Unix_Socket_Directories=/x",
            "a=serve-mariadb:--datadir=/x",
            "a=serve-mariadb:skip_networking",
            "a=serve:cores 2",
            "a=serve:--bin --cores 2",
            "a=serve-mariadb:in=",
            "a=serve-postgres:node=",
            "a=serve-postgres:fsync",
            "a=serve-postgres:'x",
            "a=serve-oracle",
        ];
        golden_cases("arms_refused", refused.map(|text| (text, vec![Spec::parse(text).unwrap_err()])));
    }

    #[test]
    fn one_arm_becomes_several_that_differ_in_one_setting() {
        let read = |text| Spec::parse(text).unwrap();
        let specs = [read("u=postgres://u@h/d"), read("pg=serve-postgres:fsync=on shared_buffers=9MB")];
        let varied = vary(&specs, "shared_buffers=1GB,4GB").unwrap();
        // The second call makes each value of one setting with each of the other.
        let both = vary(&varied, "fsync=on,off").unwrap();
        let arms = |specs: &[Spec]| specs.iter().map(shown).collect();
        golden_cases("arms_varied", [("once", arms(&varied)), ("twice", arms(&both))]);
        assert!(vary(&both, "fsync=x").unwrap_err().contains("fsync varies already"));
        assert!(vary(&specs, "port=1,2").unwrap_err().contains("port is set by the lab"));

        let two = [read("a=serve"), read("b=serve")];
        assert_eq!(vary(&two, "cores=1,2").unwrap().len(), 4);
        assert!(vary(&specs[..1], "x=1").unwrap_err().contains("only servers that the lab starts"));
        assert!(vary(&two, "cores=1,,2").unwrap_err().contains("is written"));
    }
}
