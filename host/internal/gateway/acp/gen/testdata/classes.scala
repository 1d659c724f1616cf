// Basic types
case class AgentID(id: String)
case class MessageID(id: String)
case class Timestamp(time: String) // Using String for simplicity; could use Instant
// Message types as a sealed trait hierarchy
sealed trait MessageType
object MessageType {
case object REQUEST extends MessageType
case object RESPONSE extends MessageType
case object INFORM extends MessageType
case object QUERY extends MessageType
case object ACKNOWLEDGE extends MessageType
case object ERROR extends MessageType
}
// Header and Message case classes
case class Header(
version: String,
sender: AgentID,
receiver: AgentID,
`type`: MessageType, // Backticks needed as 'type' is a Scala keyword
id: MessageID,
timestamp: Timestamp,
contentType: String,
replyTo: Option[MessageID] = None,
conversationId: Option[String] = None
)
case class Message(header: Header, body: String)
