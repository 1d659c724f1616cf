package host

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"skep/host/internal/definition/config"
	"skep/host/internal/swarm"
	"skep/host/internal/telemetry/logexport"
	"skep/host/internal/telemetry/otlp"
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

// openCollector prepares what goes to the collector that the file names, if it names one: the log, and
// traces. It calls no one.
func (h *Host) openCollector(ctx context.Context) error {
	t := h.opt.Config.Telemetry
	if t.Endpoint == "" {
		return nil
	}
	transport, closeConns, err := operatorTransport("[telemetry]", t.Endpoint, h.opt.Network)
	if err != nil {
		return fmt.Errorf("telemetry.endpoint: %w", err)
	}
	h.closeCollector = closeConns
	collector := otlp.Collector{
		Endpoint: t.Endpoint, Header: t.Header, Value: t.HeaderValue.Reveal(), Timeout: t.ExportTimeout,
		Transport: transport, Version: h.opt.Version, Instance: nameOf(h.opt), Logger: h.levels.Logger(h.opt.Logger, "traces"),
	}
	if t.Logs {
		if h.exported, err = logexport.Open(ctx, collector); err != nil {
			return err
		}
		h.teed = h.exported.Tee(h.opt.Logger, h.opt.Config.Console.Look == config.LookFree)
	}
	h.traces, err = trace.Open(ctx, trace.Options{Collector: collector, Ratio: t.Sample, Queue: t.SpanQueue})
	return err
}

// closeTelemetry ends what goes to the collector, the log last.
func (h *Host) closeTelemetry() error {
	err := errors.Join(h.traces.Close(), h.exported.Close())
	if h.closeCollector != nil {
		h.closeCollector()
	}
	h.traces, h.exported, h.closeCollector = nil, nil, nil
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
