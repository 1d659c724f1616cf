use crate::json::Object;
use crate::{base64, Error, Op, Turn};

/// Bytes that are too large for a message or a value.
impl Turn<'_> {
    /// Keeps up to 3,000,000 bytes and returns their address, by which all agents of the
    /// tenant read them. It counts only if the turn ends well. The blob goes with the last
    /// task that has put it.
    pub fn blob_put(&mut self, bytes: &[u8]) -> Result<String, Error> {
        let request = Object::new().text("data", &base64::encode(bytes)).json();
        Ok(self.call(Op::BLOB_PUT, Some(&request))?.get_str("sha256"))
    }

    /// Reads a blob by its address; NOT_FOUND when the tenant has none.
    pub fn blob_get(&mut self, sha256: &str) -> Result<Vec<u8>, Error> {
        let answer = self.call(Op::BLOB_GET, Some(&Object::new().text("sha256", sha256).json()))?;
        Ok(base64::decode(&answer.get_str("data")))
    }
}
