import acp._
import java.io.IOException
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
    val address = new URL(variable("SKEP_URL") + "/acp/v1/messages")
    val (status, text) =
      try {
        val call = address.openConnection.asInstanceOf[HttpURLConnection]
        call.setRequestProperty("Authorization", "Bearer " + variable("SKEP_TOKEN"))
        call.setRequestProperty("Content-Type", "application/json")
        call.setDoOutput(true)
        call.getOutputStream.write(must(acp.Messages.encodeMessage(message)).getBytes(UTF_8))
        val reply = if (call.getResponseCode < 400) call.getInputStream else call.getErrorStream
        (call.getResponseCode, if (reply == null) "" else Source.fromInputStream(reply, "UTF-8").mkString)
      } catch {
        case away: IOException => throw new IllegalArgumentException(s"no answer from $address: $away")
      }
    // What is refused before it is read as a message, as for a wrong token, is none.
    must(acp.Messages.decodeMessage(text).left.map(_ => s"$status: ${text.trim}"))
  }

  /** A variable of the environment. */
  def variable(name: String): String = sys.env.get(name).filter(_.nonEmpty).getOrElse(throw new IllegalArgumentException("not set: " + name))

  /** What was read or written, or the reason why not as an exception. */
  def must[T](read: Either[String, T]): T = read.fold(reason => throw new IllegalArgumentException(reason), identity)

  def main(args: Array[String]): Unit =
    try order(args)
    catch {
      case wrong @ (_: IllegalArgumentException | _: IOException) =>
        Console.err.println(wrong.getMessage)
        sys.exit(1)
    }

  def order(args: Array[String]): Unit = {
    if (args.length != 2 || !args(1).matches("[0-9]{1,9}")) must(Left("usage: Customer ITEM COUNT, as in: Customer screws 6"))
    val question = request(must(orders.Messages.encodeOrder(Order(args(0), args(1).toInt))))
    val answer = post(question)
    if (answer.header.`type` != MessageType.RESPONSE || answer.header.replyTo != Some(question.header.id)) must(Left(s"${answer.header.`type`}: ${answer.body}"))
    val receipt = must(orders.Messages.decodeReceipt(answer.body))
    println(String.format(Locale.ROOT, "%d %s: %.2f", Int.box(receipt.count), receipt.item, Double.box(receipt.cents / 100.0)))
  }
}
