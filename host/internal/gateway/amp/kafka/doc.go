// Package kafka owns the connection to the brokers of a Kafka cluster: a topic for each type of
// message, the consumer group of the host, whose place moves on when messages were taken, and
// publishing that ends when the cluster has the message. It must not know what the messages are.
package kafka
