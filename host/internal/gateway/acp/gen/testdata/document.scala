import java.time.Instant
// Define agents and message details
val sender = AgentID("agentA")
val receiver = AgentID("agentB")
val messageId = MessageID("msg123")
val timestamp = Timestamp(Instant.now().toString)
val conversationId = "conv456"
// Create the REQUEST header
val requestHeader = Header(
version = "1.0",
sender = sender,
receiver = receiver,
`type` = MessageType.REQUEST,
id = messageId,
timestamp = timestamp,
contentType = "application/json",
conversationId = Some(conversationId)
)
// Define the body as a JSON string
val requestBody = """{"action": "doSomething", "params": {"param1": "value1"}}"""
val requestMessage = Message(requestHeader, requestBody)
// Simulated send function (transport-specific implementation omitted)
def sendMessage(msg: Message): Unit = {
println(s"Sending: $msg") // Placeholder for actual transport logic
}
sendMessage(requestMessage)
// Simulated receive function (returns the request message for this example)
def receiveMessage(): Message = requestMessage // In practice, this would listen on a transport
val receivedMsg = receiveMessage()
// Process based on message type
receivedMsg.header.`type` match {
case MessageType.REQUEST =>
// Create a RESPONSE
val responseHeader = Header(
version = "1.0",
sender = AgentID("agentB"),
receiver = receivedMsg.header.sender,
`type` = MessageType.RESPONSE,
id = MessageID("msg124"),
timestamp = Timestamp(Instant.now().toString),
contentType = "application/json",
replyTo = Some(receivedMsg.header.id),
conversationId = receivedMsg.header.conversationId
)
val responseBody = """{"status": "success", "result": "done"}"""
val responseMessage = Message(responseHeader, responseBody)
sendMessage(responseMessage)
case _ =>
println("Unhandled message type")
}
