package a2a

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	a2agrpc "github.com/a2aproject/a2a-go/v2/a2agrpc/v1"
	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/grpcconn"
)

// withGRPC lets a client of the library use gRPC.
func withGRPC(client *http.Client) a2aclient.FactoryOption {
	return a2aclient.WithTransport(a2a.TransportProtocolGRPC, a2aclient.TransportFactoryFn(
		func(_ context.Context, _ *a2a.AgentCard, at *a2a.AgentInterface) (a2aclient.Transport, error) {
			authority := at.URL
			if u, err := url.Parse(at.URL); err == nil && u.Scheme == "https" && u.Host != "" {
				authority = u.Host
			}
			if authority == "" || strings.ContainsAny(authority, "/?#@") {
				return nil, gateway.Refuse("the gRPC interface of the card has the address %q, which is no HOST:PORT", at.URL)
			}
			conn := grpcconn.Conn{Client: client, Base: "https://" + authority, MaxMessage: maxAnswer}
			return a2agrpc.NewGRPCTransportFromClient(a2apb.NewA2AServiceClient(conn)), nil
		}))
}
