import acp.Messages.*;
import java.net.URI;
import java.net.http.*;
import java.time.Instant;
import java.util.*;
import orders.Messages.Order;
import orders.Messages.Receipt;

/** Orders some pieces of one thing from an agent over ACP: the packages acp and orders are made by skep acp compile. */
public class Customer {
    /** The REQUEST with a body for the agent stock. */
    static Message request(String body) {
        return new Message(new Header("1.0", new AgentID("customer"), new AgentID("stock"), MessageType.REQUEST,
            new MessageID(UUID.randomUUID().toString()), new Timestamp(Instant.now().toString()), "application/json", null, null, Map.of()), body);
    }

    /** Sends a message and reads the one that answers it. */
    static Message post(Message message) throws Exception {
        HttpRequest call = HttpRequest.newBuilder(URI.create(System.getenv("SKEP_URL") + "/acp/v1/messages"))
            .header("Authorization", "Bearer " + System.getenv("SKEP_TOKEN")).header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(message.encode())).build();
        return Message.decode(HttpClient.newHttpClient().send(call, HttpResponse.BodyHandlers.ofString()).body());
    }

    public static void main(String[] args) throws Exception {
        Message question = request(new Order(args[0], Integer.parseInt(args[1])).encode());
        Message answer = post(question);
        if (answer.header().type() != MessageType.RESPONSE || !question.header().id().equals(answer.header().replyTo())) {
            System.err.println(answer.header().type() + ": " + answer.body());
            System.exit(1);
        }
        Receipt receipt = Receipt.decode(answer.body());
        System.out.printf(Locale.ROOT, "%d %s: %.2f%n", receipt.count(), receipt.item(), receipt.cents() / 100.0);
    }
}
