package config

// RabbitMQ has the keys of [gateways.amp.rabbitmq]: the broker of AMQP 0-9-1 over which partners
// with queues send and get messages.
type RabbitMQ struct {
	Broker   string // amqp://HOST[:PORT][/VHOST] or amqps, empty for none
	Exchange string
	BrokerAccess
}

// QueuesKey is the key of [AMPPartner].Queues.
const QueuesKey = "queues"

// Settings are the keys of the table.
func (m *RabbitMQ) Settings() []Setting {
	return append([]Setting{
		field(&m.Broker, "broker", "address", amqpPorts.address, "Where the broker is, as in `amqps://broker.example:5671`, with its virtual host as the path; `amqp` is without TLS.").by(Fixed).restarts(),
		field(&m.Exchange, "exchange", "string", func(t *table, key string) string { return t.plainOr(key, defaultExchange) }, "The topic exchange over which messages go. The host's queue there is EXCHANGE.SWARM, and what it sets aside goes to the queue EXCHANGE.dead.").withDefaultText(defaultExchange).restarts(),
	}, m.BrokerAccess.settings()...)
}

// defaultExchange is the exchange without a setting.
const defaultExchange = "amp"

// plainOr is plain, or a default.
func (t *table) plainOr(key, standard string) string {
	if text := t.plain(key); text != "" {
		return text
	}
	return standard
}

// checkQueues holds the broker and the partners with queues against each other.
func (r gatewayReader) checkQueues(g Gateway) {
	m, t := &g.Protocol.(*AMP).RabbitMQ, r.t.child("rabbitmq")
	k, kafkaTable := &g.Protocol.(*AMP).Kafka, r.t.child("kafka")
	has := false
	for _, p := range g.Partners {
		own, at := p.Protocol.(*AMPPartner), r.t.child("partners").child(p.Name)
		if !own.Queues {
			continue
		}
		has = true
		switch queues := at.child(QueuesKey); {
		case m.Broker == "" && len(k.Brokers) == 0:
			r.d.atKey(queues, queues.path+" needs broker in "+t.path+", or brokers in "+kafkaTable.path)
		case p.HMACKey == "":
			r.d.atKey(queues, queues.path+" needs hmac_key in the same table: at a broker only a signature shows who has sent a message")
		case p.URL != "":
			r.d.warn(at.child("url"), at.child("url").path+" has no effect: its messages leave by the broker")
		}
	}
	at := t.child("broker")
	if len(k.Brokers) > 0 {
		at = kafkaTable.child("brokers")
		r.checkKafka(k, kafkaTable)
	}
	if m.Broker != "" {
		amqpPorts.check(r, t, m.Broker, &m.BrokerAccess)
	}
	switch {
	case m.Broker != "" && len(k.Brokers) > 0:
		r.d.atKey(at, at.path+" and "+t.child("broker").path+" are set: messages go over one of them; remove the other")
	case (m.Broker != "" || len(k.Brokers) > 0) && !has:
		r.d.warn(at, at.path+" has no effect: no partner of the file has queues")
	}
}
