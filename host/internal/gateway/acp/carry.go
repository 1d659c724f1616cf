package acp

import (
	"context"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
)

// Carry implements [gateway.Carrier].
func (g *Gateway) Carry(context.Context, gateway.Partner, swarm.Delivery) gateway.Carried {
	return gateway.Carried{State: gateway.Refused, Reason: "TODO"}
}

// Discover implements [gateway.Gateway]. The protocol has no list of agents.
func (g *Gateway) Discover(context.Context, gateway.Partner) ([]gateway.ForeignAgent, error) {
	return nil, nil
}
