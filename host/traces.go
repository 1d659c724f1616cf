package host

import (
	"context"
	"fmt"
	"net/http"

	"skep/host/internal/swarm"
	"skep/host/internal/telemetry/trace"
	"skep/host/internal/turn/egress"
)

// observers are the observers of a runtime.
type observers []swarm.Observer

// Committed implements [swarm.Observer].
func (list observers) Committed(c swarm.Change) {
	for _, o := range list {
		o.Committed(c)
	}
}

func (h *Host) observers() observers {
	list := observers{h.work, h.pulse}
	if h.traces != nil {
		list = append(list, h.traces)
	}
	return list
}

// sample decides which traces are kept, nil for a host without a collector.
func (h *Host) sample() func([16]byte) bool {
	if h.traces == nil {
		return nil
	}
	return h.traces.Sample
}

// openTraces makes the sender of traces, if the file names a collector.
func (h *Host) openTraces(ctx context.Context) error {
	t := h.opt.Config.Telemetry
	if t.Endpoint == "" {
		return nil
	}
	transport, closeConns, err := operatorTransport("[telemetry]", t.Endpoint, h.opt.Network)
	if err != nil {
		return fmt.Errorf("telemetry.endpoint: %w", err)
	}
	h.traces, err = trace.Open(ctx, trace.Options{
		Endpoint: t.Endpoint, Header: t.Header, Value: t.HeaderValue.Reveal(), Ratio: t.Sample, Queue: t.SpanQueue, Timeout: t.ExportTimeout,
		Transport: transport, Closed: closeConns, Version: h.opt.Version, Instance: nameOf(h.opt), Logger: h.logOf("traces"),
	})
	return err
}

// operatorTransport carries requests to a URL of a table of the file and to nothing else. The operator
// names it, so it may have a private address; a public one is reached by https alone.
func operatorTransport(table, endpoint string, network func(*egress.Options)) (transport http.RoundTripper, closeConns func(), err error) {
	grant, err := egress.ParseGrant("POST " + endpoint)
	if err != nil {
		return nil, nil, err
	}
	o := egress.Options{KeepAlive: egress.KeepAlive{MaxIdlePerHost: 1}}
	if network != nil {
		network(&o)
	}
	client := egress.New(o)
	return client.Transport(egress.Policy{
		Table: table, Grants: []egress.Grant{grant}, AllowPrivate: true, PrivateNames: true, NoPublicHTTP: true,
	}), client.Close, nil
}
