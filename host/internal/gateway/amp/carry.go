package amp

import (
	"context"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
)

// Carry implements [gateway.Carrier]. Partners call the gateway and are not called by it:
// what an agent answers is the answer to their request.
func (g *Gateway) Carry(context.Context, gateway.Partner, swarm.Delivery) gateway.Carried {
	return gateway.Carried{State: gateway.Refused, Reason: "partners of AMP are not called: they get the answers to their requests"}
}

// Discover implements [gateway.Gateway]. Who is not called has no list of agents here.
func (g *Gateway) Discover(context.Context, gateway.Partner) ([]gateway.ForeignAgent, error) {
	return nil, nil
}
