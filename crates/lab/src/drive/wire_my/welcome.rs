//! Sets up a connection to a MySQL or MariaDB server: greeting, authentication, and preparing the
//! workload's statements. It authenticates by mysql_native_password or caching_sha2_password. The
//! latter needs a server that remembers the password: the lab's control connection, which comes
//! first, has given it.

use bytes::BytesMut;
use mysql_common::constants::CapabilityFlags;
use mysql_common::io::ParseBuf;
use mysql_common::packets::{AuthPlugin, AuthSwitchRequest, HandshakePacket, HandshakeResponse};
use mysql_common::proto::MySerialize as _;

use super::answer::{error, prepared};
use super::{Mysql, Session, packet, prepare};
use crate::drive::wire::{Failure, Refusal};
use crate::load::Protocol;

const CAPABILITIES: CapabilityFlags = CapabilityFlags::CLIENT_LONG_PASSWORD
    .union(CapabilityFlags::CLIENT_PROTOCOL_41)
    .union(CapabilityFlags::CLIENT_TRANSACTIONS)
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PS_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA);
const PACKET_MAX: u32 = 1 << 24;
/// From this version on a server knows utf8mb4, as all that the lab supports do.
const UTF8MB4: (u16, u16, u16) = (5, 5, 3);
/// The reason for an end where the bytes make no sense.
const CUT: &str = "the server's greeting is cut or not MySQL's";

#[derive(Default)]
pub(crate) struct Greeting {
    state: State,
    nonce: Vec<u8>,
    numbers: Vec<Option<u32>>,
}

#[derive(Default, Clone, Copy)]
enum State {
    /// For the server's greeting.
    #[default]
    Greeted,
    /// For the end of authentication or its next step.
    Authenticated,
    /// For the number of the next statement.
    Prepared,
    /// For this many packets of its description.
    Described(u32),
}

impl Greeting {
    /// Takes one packet; returns the session once the connection is ready.
    pub(super) fn take(
        &mut self,
        wire: &Mysql,
        number: u8,
        body: &[u8],
        out: &mut BytesMut,
    ) -> Result<Option<Session>, Refusal> {
        let mut reply = |body: &[u8]| packet(out, number.wrapping_add(1), |out| out.extend_from_slice(body));
        let ready = match (self.state, body) {
            (_, [0xff, ..]) => return Err(Refusal::Server(self.refused(wire, body))),
            (State::Greeted, _) => {
                reply(&self.introduce(wire, body)?);
                self.state = State::Authenticated;
                false
            }
            (State::Authenticated, [0x00, ..]) => self.prepare_next(wire, out),
            // The name of another way to authenticate, and its nonce.
            (State::Authenticated, [0xfe, ..]) => {
                let switch: AuthSwitchRequest<'_> = ParseBuf(body).parse(()).map_err(|_| CUT)?;
                self.nonce = switch.plugin_data().to_vec();
                reply(&self.respond(wire, &switch.auth_plugin())?);
                false
            }
            // caching_sha2_password: the server remembers the password; only then comes the end.
            (State::Authenticated, [0x01, 0x03, ..]) => false,
            (State::Authenticated, [0x01, 0x04, ..]) => {
                return Err("the server no longer remembers the password (caching_sha2_password): run the \
                            lab again, whose first connection gives it anew"
                    .into());
            }
            (State::Authenticated, _) => return Err("an unknown step of authentication".into()),
            (State::Prepared, _) => {
                let (id, left) = prepared(body).ok_or(CUT)?;
                self.numbers.push(Some(id));
                self.described(wire, left, out)
            }
            (State::Described(left), _) => self.described(wire, left - 1, out),
        };
        Ok(ready.then(|| Session::ready(std::mem::take(&mut self.numbers))))
    }

    /// Answers the server's greeting with the client's user, password and database.
    fn introduce(&mut self, wire: &Mysql, body: &[u8]) -> Result<Vec<u8>, Refusal> {
        let greeting: HandshakePacket<'_> = ParseBuf(body).parse(()).map_err(|_| CUT)?;
        self.nonce = greeting.nonce();
        let plugin = greeting.auth_plugin().unwrap_or(AuthPlugin::MysqlNativePassword);
        // The driver answers an unknown way with one that it knows; the server then names the way
        // it wants.
        let (plugin, response) = match self.respond(wire, &plugin) {
            Ok(response) => (plugin, response),
            Err(_) => {
                let native = AuthPlugin::MysqlNativePassword;
                let response = self.respond(wire, &native)?;
                (native, response)
            }
        };
        let (user, database) = (wire.target.user.as_bytes(), wire.target.database.as_bytes());
        let introduction = HandshakeResponse::new(
            Some(response),
            UTF8MB4,
            Some(user),
            Some(database),
            Some(plugin),
            CAPABILITIES,
            None,
            PACKET_MAX,
        );
        let mut bytes = Vec::new();
        introduction.serialize(&mut bytes);
        Ok(bytes)
    }

    fn respond(&self, wire: &Mysql, plugin: &AuthPlugin<'_>) -> Result<Vec<u8>, Refusal> {
        if !matches!(plugin, AuthPlugin::MysqlNativePassword | AuthPlugin::CachingSha2Password) {
            return Err(Refusal::Other(format!(
                "the server authenticates `{}` by {}; mysql_native_password and caching_sha2_password are known",
                wire.target.user,
                String::from_utf8_lossy(plugin.as_bytes())
            )));
        }
        let data = plugin.gen_data(wire.target.password.as_deref(), &self.nonce);
        Ok(data.map(|data| data.to_vec()).unwrap_or_default())
    }

    /// Prepares the next statement; returns true when none is left.
    fn prepare_next(&mut self, wire: &Mysql, out: &mut BytesMut) -> bool {
        while wire.statements.get(self.numbers.len()).is_some_and(|one| one.protocol != Protocol::Prepared) {
            self.numbers.push(None);
        }
        let Some(statement) = wire.statements.get(self.numbers.len()) else { return true };
        prepare(statement, out);
        self.state = State::Prepared;
        false
    }

    fn described(&mut self, wire: &Mysql, left: u32, out: &mut BytesMut) -> bool {
        if left == 0 {
            return self.prepare_next(wire, out);
        }
        self.state = State::Described(left);
        false
    }

    /// The error, with the statement it is about.
    fn refused(&self, wire: &Mysql, body: &[u8]) -> Failure {
        let mut failure = Failure::default();
        error(body, &mut failure);
        if let (State::Prepared, Some(statement)) = (self.state, wire.statements.get(self.numbers.len())) {
            failure.message = format!("{} (preparing `{}`)", failure.message, statement.text);
        }
        failure
    }
}
