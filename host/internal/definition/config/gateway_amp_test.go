package config

import (
	"fmt"
	"strings"
	"testing"
)

// D-M15: a shared key of AMP has 16 bytes at least, and a partner that only signs needs one;
// partners of other protocols have none.
func TestAMPKeys(t *testing.T) {
	t.Parallel()
	const table = "[gateways.amp]\n[gateways.amp.partners.lab]\n"
	for text, want := range map[string]string{
		table: "",
		table + `hmac_key = "a-key-that-is-long-enough"`:                         "",
		table + "hmac_key = \"a-key-that-is-long-enough\"\nhmac_alone = true":    "",
		table + `hmac_key = "short"`:                                             "gateways.amp.partners.lab.hmac_key must have at least 16 bytes",
		table + `hmac_key = ""`:                                                  "gateways.amp.partners.lab.hmac_key is empty",
		table + `hmac_key = "env::EMPTY"`:                                        "gateways.amp.partners.lab.hmac_key is empty",
		table + `hmac_alone = true`:                                              "gateways.amp.partners.lab.hmac_alone needs hmac_key in the same table",
		strings.ReplaceAll(table, "amp", "acp") + `hmac_key = "a-key-of-acp-16"`: "hmac_key binds messages to a shared key; it is for amp alone; remove the line",
	} {
		file := strings.Replace(withUAMP, `expose = ["uamp"]`, "", 1) + text
		_, err := Parse("swarm.toml", []byte(file), "testdata/valid", testOptions)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s\n%v, want %q", text, err, want)
		}
	}
}

// TestQueuesOfAMP (M-095): a partner with queues needs a broker and a shared key, and the broker's
// address is one of AMQP; what has no effect is warned of.
func TestQueuesOfAMP(t *testing.T) {
	t.Parallel()
	const key = "hmac_key = \"a-key-that-is-long-enough\"\n"
	for name, c := range map[string]struct{ table, partner, want, warns string }{
		"whole":       {`broker = "amqp://127.0.0.1/mesh"`, "queues = true\n" + key, "", ""},
		"no broker":   {"", "queues = true\n" + key, "gateways.amp.partners.lab.queues needs broker in gateways.amp.rabbitmq, or brokers in gateways.amp.kafka", ""},
		"no key":      {`broker = "amqp://127.0.0.1"`, "queues = true\n", "gateways.amp.partners.lab.queues needs hmac_key in the same table", ""},
		"no queues":   {`broker = "amqp://127.0.0.1"`, "", "", "gateways.amp.rabbitmq.broker has no effect"},
		"far":         {`broker = "amqp://broker.example"`, "queues = true\n" + key, "", "use amqps"},
		"a url":       {`broker = "amqps://broker.example"`, "queues = true\nurl = \"https://lab.example\"\n" + key, "", "gateways.amp.partners.lab.url has no effect"},
		"of MQTT":     {`broker = "mqtt://broker.example"`, "queues = true\n" + key, `must be an address as in "amqps://broker.example:5671"`, ""},
		"a user":      {`broker = "amqp://guest@127.0.0.1"`, "queues = true\n" + key, "must be an address", ""},
		"no username": {"broker = \"amqp://127.0.0.1\"\npassword = \"env::OPS_KEY\"", "queues = true\n" + key, "gateways.amp.rabbitmq.password needs username", ""},
	} {
		text := strings.Replace(withUAMP, `expose = ["uamp"]`, "", 1) + "[gateways.amp.rabbitmq]\n" + c.table + "\n[gateways.amp.partners.lab]\n" + c.partner
		read, err := Parse("swarm.toml", []byte(text), "testdata/valid", testOptions)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err == nil {
			if warned := fmt.Sprint(read.Warnings); c.warns == "" && strings.Contains(warned, "has no effect") || !strings.Contains(warned, c.warns) {
				t.Errorf("%s: warned of %s, want %q", name, warned, c.warns)
			}
		}
	}
}

// TestBindingOfAMP (M-097): a partner that is called over gRPC has the address of a host, and no broker.
func TestBindingOfAMP(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ partner, want string }{
		"HTTP":    {"binding = \"http\"\nurl = \"https://lab.example/invoke\"\n", ""},
		"gRPC":    {"binding = \"grpc\"\nurl = \"https://lab.example/\"\n", ""},
		"no url":  {"binding = \"grpc\"\n", `gateways.amp.partners.lab.binding is "grpc", and needs url in the same table`},
		"a path":  {"binding = \"grpc\"\nurl = \"https://lab.example/amp/v1/invoke\"\n", `gateways.amp.partners.lab.url has a path, and binding is "grpc": write the address of the host alone, "https://lab.example"`},
		"queues":  {"binding = \"grpc\"\nqueues = true\nhmac_key = \"a-key-that-is-long-enough\"\n", `gateways.amp.partners.lab.binding is "grpc" and queues = true`},
		"another": {"binding = \"carrier\"\nurl = \"https://lab.example\"\n", "gateways.amp.partners.lab.binding"},
	} {
		text := strings.Replace(withUAMP, `expose = ["uamp"]`, "", 1) + "[gateways.amp.rabbitmq]\nbroker = \"amqp://127.0.0.1\"\n[gateways.amp.partners.lab]\n" + c.partner
		_, err := Parse("swarm.toml", []byte(text), "testdata/valid", testOptions)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestJoinOfAMP (M-026): agents join a partner that has a url, when the host's own is known.
func TestJoinOfAMP(t *testing.T) {
	t.Parallel()
	const url = "url = \"https://lab.example/invoke\"\n"
	for name, c := range map[string]struct{ public, partner, want string }{
		"whole":         {"https://hive.example", "join = true\njoin_token = \"env::OPS_KEY\"\n" + url, ""},
		"no url":        {"https://hive.example", "join = true\n", "gateways.amp.partners.lab.join needs url in the same table"},
		"no public_url": {"", "join = true\n" + url, "gateways.amp.partners.lab.join needs public_url in [server]"},
		"queues":        {"https://hive.example", "join = true\nqueues = true\nhmac_key = \"a-key-that-is-long-enough\"\n" + url, "gateways.amp.partners.lab.join does not go with queues"},
		"no join":       {"https://hive.example", "join_token = \"env::OPS_KEY\"\n" + url, "gateways.amp.partners.lab.join_token needs join = true in the same table"},
	} {
		text := strings.Replace(withUAMP, `expose = ["uamp"]`, "", 1) + "[gateways.amp.rabbitmq]\nbroker = \"amqp://127.0.0.1\"\n[gateways.amp.partners.lab]\n" + c.partner
		if c.public != "" {
			text += "[server]\npublic_url = \"" + c.public + "\"\n"
		}
		_, err := Parse("swarm.toml", []byte(text), "testdata/valid", testOptions)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestKafkaOfAMP (M-096): brokers are addresses with ports, reached by TLS unless the file says
// otherwise; RabbitMQ beside them is one broker too many.
func TestKafkaOfAMP(t *testing.T) {
	t.Parallel()
	const partner = "[gateways.amp.partners.lab]\nqueues = true\nhmac_key = \"a-key-that-is-long-enough\"\n"
	for name, c := range map[string]struct{ table, rest, want, warns string }{
		"whole":       {`brokers = ["a.example:9093", "[::1]:9092"]`, partner, "", ""},
		"near":        {"brokers = [\"127.0.0.1:9092\"]\nplain = true", partner, "", ""},
		"far":         {"brokers = [\"127.0.0.1:9092\", \"a.example:9092\"]\nplain = true", partner, "", "gateways.amp.kafka.plain: messages and the password go over the network in the clear"},
		"no port":     {`brokers = ["a.example"]`, partner, `must be an address as in "broker.example:9093", which "a.example" is not`, ""},
		"port 0":      {`brokers = ["a.example:0"]`, partner, "must be an address", ""},
		"a URL":       {`brokers = ["kafka://a.example:9092"]`, partner, "must be an address", ""},
		"a mechanism": {"brokers = [\"a.example:9093\"]\nmechanism = \"gssapi\"", partner, "gateways.amp.kafka.mechanism", ""},
		"no username": {"brokers = [\"a.example:9093\"]\npassword = \"env::OPS_KEY\"", partner, "gateways.amp.kafka.password needs username", ""},
		"no queues":   {`brokers = ["a.example:9093"]`, "", "", "gateways.amp.kafka.brokers has no effect"},
		"two brokers": {`brokers = ["a.example:9093"]`, "[gateways.amp.rabbitmq]\nbroker = \"amqp://127.0.0.1\"\n" + partner, "gateways.amp.kafka.brokers and gateways.amp.rabbitmq.broker are set", ""},
	} {
		text := strings.Replace(withUAMP, `expose = ["uamp"]`, "", 1) + "[gateways.amp.kafka]\n" + c.table + "\n" + c.rest
		read, err := Parse("swarm.toml", []byte(text), "testdata/valid", testOptions)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err == nil {
			if warned := fmt.Sprint(read.Warnings); c.warns == "" && strings.Contains(warned, "gateways.amp.kafka") || !strings.Contains(warned, c.warns) {
				t.Errorf("%s: warned of %s, want %q", name, warned, c.warns)
			}
		}
	}
}
