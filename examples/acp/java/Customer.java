import acp.Messages.*;
import java.io.IOException;
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
        URI address = URI.create(variable("SKEP_URL") + "/acp/v1/messages");
        HttpRequest call = HttpRequest.newBuilder(address)
            .header("Authorization", "Bearer " + variable("SKEP_TOKEN")).header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(message.encode())).build();
        HttpResponse<String> reply;
        try {
            reply = HttpClient.newHttpClient().send(call, HttpResponse.BodyHandlers.ofString());
        } catch (IOException away) {
            throw new IllegalArgumentException("no answer from " + address + ": " + away);
        }
        try {
            return Message.decode(reply.body());
        } catch (RuntimeException noMessage) { // refused before it was read as a message, as for a wrong token
            throw new IllegalArgumentException(reply.statusCode() + ": " + reply.body().strip());
        }
    }

    /** A variable of the environment. */
    static String variable(String name) {
        String value = System.getenv(name);
        if (value == null || value.isEmpty()) {
            throw new IllegalArgumentException("not set: " + name);
        }
        return value;
    }

    public static void main(String[] args) throws Exception {
        try {
            order(args);
        } catch (IllegalArgumentException | MessageError | orders.Messages.MessageError wrong) {
            System.err.println(wrong.getMessage());
            System.exit(1);
        }
    }

    static void order(String[] args) throws Exception {
        if (args.length != 2 || !args[1].matches("[0-9]{1,9}")) {
            throw new IllegalArgumentException("usage: Customer ITEM COUNT, as in: Customer screws 4");
        }
        Message question = request(new Order(args[0], Integer.parseInt(args[1])).encode());
        Message answer = post(question);
        if (answer.header().type() != MessageType.RESPONSE || !question.header().id().equals(answer.header().replyTo())) {
            throw new IllegalArgumentException(answer.header().type() + ": " + answer.body());
        }
        Receipt receipt = Receipt.decode(answer.body());
        System.out.printf(Locale.ROOT, "%d %s: %.2f%n", receipt.count(), receipt.item(), receipt.cents() / 100.0);
    }
}
