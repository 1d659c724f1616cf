// Command bench owns the comparison of skep with its peers and with physical
// limits: every figure is taken in the same run as the one it is compared with.
// It must not be used to pass or fail anything; machines differ.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"
	"time"

	"skep/host/internal/turn/process"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == process.Command {
		os.Exit(process.Exec(os.Args[2:], os.Stderr))
	}
	if len(os.Args) > 2 && os.Args[1] == childCommand {
		os.Exit(runChild(context.Background(), os.Args[2:]))
	}
	rounds := flag.Int("rounds", 3, "how often each pair is measured; the median counts")
	span := flag.Duration("time", time.Second, "how long one measurement takes; most take a fraction of it")
	only := flag.String("only", "", "measure only these parts, separated by commas: "+partNames())
	full := flag.Bool("full", false, "full sizes: ten times the histories and tasks, five times the parked tenants and the stores to start on, and turns that wait for a model with TLS")
	quick := flag.Bool("quick", false, "small sizes where a part has them, to see that it works")
	output := flag.String("o", string(textFormat), "text, json or markdown")
	profile := flag.String("cpuprofile", "", "write a CPU profile of the run to this file")
	flag.Parse()
	stop, err := startProfile(*profile)
	if err == nil {
		b := &bench{ctx: context.Background(), rounds: *rounds, span: *span, full: *full, quick: *quick}
		err = run(b, *only, format(*output))
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// part is one section of the report.
type part struct {
	name, title string
	do          func(*bench)
}

var parts = []part{
	{"turns", "A turn, metered, beside wazero as it comes", turns},
	{"kill", "How late a guest ends after its deadline", kills},
	{"clean", "A turn that starts clean, beside extism", cleanTurns},
	{"ops", "From guest to host and back, beside go-plugin", hostOps},
	{"levels", "An agent as module and as process, beside go-plugin", levels},
	{"density", "Memory of sandboxes that wait", density},
	{"compile", "What an admitted module costs to compile", compiles},
	{"warm", "From process start to the first turn", warmStarts},
	{"tokens", "A token of a model's answer, beside the providers' own clients", tokens},
	{"blocked", "Turns that wait for a model at once", blocked},
	{"posts", "A durable POST /message", posts},
	{"server", "The server, beside a2a-go's and a bare one", servers},
	{"gateways", "The same agent over MCP, A2A, ACP and a toy protocol", gateways},
	{"iacp", "The same agent over kept connections of IaCP", overIACP},
	{"uamp", "The same agent over UAMP, signed", overUAMP},
	{"uamp-large", "One user beside UAMP's largest envelopes", besideLargeUAMP},
	{"uamp-bindings", "Bindings of UAMP, with TLS", overUAMPBindings},
	{"amp", "The same agent over bindings of AMP", overAMP},
	{"declarations", "The compiler of ACP, beside Go's own parser", declarations},
	{"interswarm", "A task over two hosts, and the link between them", interswarm},
	{"peers", "A host that knows many peers", peers},
	{"stores", "A task on PostgreSQL, beside one on SQLite", stores},
	{"traces", "A task whose spans go to a collector", tracing},
	{"metrics", "A task while the metrics of its host are read", scraping},
	{"pulse", "A task while the live feed of its host is read", feeds},
	{"cluster", "Hosts that share a server", clusters},
	{"writes", "Durable writes of a turn", writes},
	{"growth", "A message as queue, history, tasks and tenants grow", growth},
	{"tenants", "Parked tenants", parkedTenants},
	{"fair", "A tenant beside one that floods", fairness},
	{"gateway-flood", "A tenant on one gateway beside one that floods another", gatewayFloods},
	{"flood", "A client beside those who want to harm the host", floods},
	{"streams", "Event streams on which nothing happens", streams},
	{"recovery", "From start to the first answer on a large store", recovery},
}

func partNames() string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	return strings.Join(names, ", ")
}

// chosen returns the parts of a list; an empty list means all.
func chosen(only string) ([]part, error) {
	if only == "" {
		return parts, nil
	}
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(only, ",") {
		wanted[strings.TrimSpace(name)] = true
	}
	var list []part
	for _, p := range parts {
		if wanted[p.name] {
			list = append(list, p)
			delete(wanted, p.name)
		}
	}
	for name := range wanted {
		return nil, fmt.Errorf("-only: no part %q; there are %s", name, partNames())
	}
	return list, nil
}

func run(b *bench, only string, f format) error {
	list, err := chosen(only)
	if err != nil {
		return err
	}
	if b.rounds < 1 || b.span <= 0 {
		return fmt.Errorf("-rounds %d and -time %v must be positive", b.rounds, b.span)
	}
	r, err := newReport(os.Stdout, f, b.rounds, b.span)
	if err != nil {
		return err
	}
	b.report = r
	for _, p := range list {
		r.begin(p)
		if err := caught(func() { p.do(b) }); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		r.endPart()
	}
	return r.end()
}

// startProfile profiles until stop is called; an empty path profiles nothing.
func startProfile(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); _ = f.Close() }, nil
}
