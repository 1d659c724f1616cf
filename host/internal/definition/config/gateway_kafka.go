package config

import (
	"fmt"
	"net"
	"strconv"
)

// Kafka has the keys of [gateways.amp.kafka]: the cluster over which partners with queues send and
// get messages.
type Kafka struct {
	Brokers   []string // HOST:PORT, empty for none
	Prefix    string
	Plain     bool
	Mechanism string
	BrokerAccess
}

// Settings are the keys of the table.
func (k *Kafka) Settings() []Setting {
	return append([]Setting{
		field(&k.Brokers, "brokers", "array of addresses", (*table).brokers, "Where brokers of the cluster are, as in `broker.example:9093`. The others are learned from these.").by(Fixed).restarts(),
		field(&k.Prefix, "prefix", "string", func(t *table, key string) string { return t.plainOr(key, defaultExchange) }, "Begin of the topics: PREFIX.request, PREFIX.response, PREFIX.event, PREFIX.error, and PREFIX.dlq for what is set aside. The host's consumer group is PREFIX.SWARM.").withDefaultText(defaultExchange).restarts(),
		boolean(&k.Plain, "plain", false, "The brokers are reached without TLS.").restarts(),
		choice(&k.Mechanism, "mechanism", "plain", []string{"plain", "scram-sha-256", "scram-sha-512"}, "How `username` and `password` are shown (SASL).").restarts(),
	}, k.BrokerAccess.settings()...)
}

// brokers reads addresses, each with a port.
func (t *table) brokers(key string) (list []string) {
	for _, v := range t.list(key) {
		host, port, err := net.SplitHostPort(v.text)
		if n, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil || host == "" || n == 0 {
			t.d.atValue(v.location, fmt.Sprintf(`%s must be an address as in "broker.example:9093", which %s is not`, v.path, v.shown))
			continue
		}
		list = append(list, v.text)
	}
	return list
}

// checkKafka looks at how the brokers are reached.
func (r gatewayReader) checkKafka(k *Kafka, t location) {
	plain := t.child("plain")
	if k.Plain && k.CA+k.Certificate+k.Key != "" {
		r.d.atKey(plain, plain.path+" is true, and certificates are set; remove it")
	}
	for _, address := range k.Brokers {
		if k.Plain && !isNear(address) {
			r.d.warn(plain, plain.path+": messages and the password go over the network in the clear; remove it")
			break
		}
	}
	r.checkAccess(t, &k.BrokerAccess)
}
