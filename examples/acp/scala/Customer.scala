import acp._
import java.net.{HttpURLConnection, URL}
import java.nio.charset.StandardCharsets.UTF_8
import java.time.Instant
import java.util.{Locale, UUID}
import orders.Order
import scala.io.Source

/** Orders some pieces of one thing from an agent over ACP: the packages acp and orders are made by skep acp compile. */
object Customer {
  /** The REQUEST with a body for the agent stock. */
  def request(body: String): Message = Message(
    Header("1.0", AgentID("customer"), AgentID("stock"), MessageType.REQUEST, MessageID(UUID.randomUUID.toString), Timestamp(Instant.now.toString), "application/json"),
    body)

  /** Sends a message and reads the one that answers it. */
  def post(message: Message): Message = {
    val call = new URL(sys.env("SKEP_URL") + "/acp/v1/messages").openConnection.asInstanceOf[HttpURLConnection]
    call.setRequestProperty("Authorization", "Bearer " + sys.env("SKEP_TOKEN"))
    call.setRequestProperty("Content-Type", "application/json")
    call.setDoOutput(true)
    call.getOutputStream.write(must(acp.Messages.encodeMessage(message)).getBytes(UTF_8))
    val reply = if (call.getResponseCode < 400) call.getInputStream else call.getErrorStream
    must(acp.Messages.decodeMessage(Source.fromInputStream(reply, "UTF-8").mkString))
  }

  /** What was read or written, or the reason why not as an exception. */
  def must[T](read: Either[String, T]): T = read.fold(reason => throw new IllegalArgumentException(reason), identity)

  def main(args: Array[String]): Unit = {
    val question = request(must(orders.Messages.encodeOrder(Order(args(0), args(1).toInt))))
    val answer = post(question)
    if (answer.header.`type` != MessageType.RESPONSE || answer.header.replyTo != Some(question.header.id)) {
      Console.err.println(s"${answer.header.`type`}: ${answer.body}")
      sys.exit(1)
    }
    val receipt = must(orders.Messages.decodeReceipt(answer.body))
    println(String.format(Locale.ROOT, "%d %s: %.2f", Int.box(receipt.count), receipt.item, Double.box(receipt.cents / 100.0)))
  }
}
