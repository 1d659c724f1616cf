package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
)

// unit is what a figure counts.
type unit string

const (
	seconds        unit = "s"
	rate           unit = "1/s"
	bytesOf        unit = "B"
	count          unit = ""
	secondsPerByte unit = "s/B"
	bytesPerByte   unit = "B/B"
)

// format is how a report is printed.
type format string

// The formats.
const (
	textFormat     format = "text"
	jsonFormat     format = "json"
	markdownFormat format = "markdown"
)

// row is one line of the report.
type row struct {
	Part  string  `json:"part"`
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  unit    `json:"unit"`
	// Peer and what follows are empty on a line that compares nothing.
	Peer      string  `json:"peer,omitempty"`
	PeerValue float64 `json:"peer_value,omitempty"`
	Ratio     float64 `json:"ratio,omitempty"`
	Target    string  `json:"target,omitempty"`
	Met       *bool   `json:"met,omitempty"`
}

// report is what a run prints. It serves one goroutine.
type report struct {
	out    io.Writer
	format format
	part   string
	// partBegan is when the part began.
	partBegan time.Time

	Machine string `json:"machine"`
	Load    string `json:"load"`
	LoadEnd string `json:"load_end"`
	Rows    []row  `json:"rows"`
}

func newReport(out io.Writer, f format, rounds int, span time.Duration) (*report, error) {
	if f != textFormat && f != jsonFormat && f != markdownFormat {
		return nil, fmt.Errorf("-o %s: it is text, json or markdown", f)
	}
	r := &report{out: out, format: f, Load: load(), Machine: fmt.Sprintf(
		"%s %s/%s, %d cores, %d rounds of %v, medians", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), rounds, span)}
	r.print("%s, load %s\n", r.Machine, r.Load)
	return r, nil
}

func (r *report) print(format string, args ...any) {
	if r.format != jsonFormat {
		fmt.Fprintf(r.out, format, args...)
	}
}

func (r *report) begin(p part) {
	r.part, r.partBegan = p.name, time.Now()
	if r.format == markdownFormat {
		r.print("\n## %s\n\n`-only %s`\n\n| row | figure | ratio | beside | target |\n|---|---|---|---|---|\n", p.title, p.name)
		return
	}
	r.print("\n%s (-only %s)\n", p.title, p.name)
}

// endPart prints how long the part took.
func (r *report) endPart() {
	if r.format == markdownFormat {
		return
	}
	r.print("  %s took %s\n", r.part, time.Since(r.partBegan).Round(time.Second))
}

// fact reports a figure by itself.
func (r *report) fact(name string, value float64, u unit) { r.add(newRow(name, value, u, "", 0, nil)) }

// compare reports a figure beside its peer's.
func (r *report) compare(name string, value float64, u unit, peer string, peerValue float64, b *bound) {
	r.add(newRow(name, value, u, peer, peerValue, b))
}

// compareTails compares the medians and the 99th percentiles of two lists of times;
// the target is for the percentiles.
func (r *report) compareTails(name string, values []float64, peer string, peerValues []float64, target *bound) {
	r.compare(name+", p50", median(values), seconds, peer, median(peerValues), none())
	r.compare(name+", p99", percentile(values, 99), seconds, peer, percentile(peerValues, 99), target)
}

func (r *report) add(w row) {
	w.Part = r.part
	r.Rows = append(r.Rows, w)
	if r.format == markdownFormat {
		r.print("%s\n", w.markdown())
		return
	}
	r.print("%s\n", w)
}

func newRow(name string, value float64, u unit, peer string, peerValue float64, b *bound) row {
	w := row{Name: name, Value: value, Unit: u, Peer: peer, PeerValue: peerValue}
	if b == nil {
		return w
	}
	w.Target = b.text
	if b.ratio != nil && peerValue != 0 {
		w.Ratio = b.ratio(value, peerValue)
	}
	if b.met != nil {
		met := b.met(value, peerValue)
		w.Met = &met
	}
	return w
}

// String renders the row as a line of text.
func (w row) String() string {
	line := fmt.Sprintf("  %-50s %12s", w.Name, figure(w.Value, w.Unit))
	if w.Peer != "" {
		line += fmt.Sprintf("  %10s of %12s  %s", w.ratio(), figure(w.PeerValue, w.Unit), w.Peer)
	}
	if w.Met != nil {
		line += fmt.Sprintf(" (target %s: %s)", w.Target, w.verdict())
	}
	return strings.TrimRight(line, " ")
}

// markdown renders the row as one of a table.
func (w row) markdown() string {
	var beside, target string
	if w.Peer != "" {
		beside = figure(w.PeerValue, w.Unit) + ", " + w.Peer
	}
	if w.Met != nil {
		target = w.Target + ": " + w.verdict()
	}
	cells := []string{strings.TrimSpace(w.Name), figure(w.Value, w.Unit), w.ratio(), beside, target}
	return "| " + strings.Join(cells, " | ") + " |"
}

// ratio renders the ratio, empty for none.
func (w row) ratio() string {
	if w.Ratio == 0 {
		return ""
	}
	return fmt.Sprintf("%.4gx", w.Ratio)
}

// verdict says whether the target is met.
func (w row) verdict() string {
	if *w.Met {
		return "met"
	}
	return "MISSED"
}

// figure renders a value with its unit.
func figure(v float64, u unit) string {
	switch u {
	case seconds:
		return duration(v)
	case rate:
		return fmt.Sprintf("%.0f/s", v)
	case bytesOf:
		if v >= 10<<20 {
			return fmt.Sprintf("%.1f MiB", v/(1<<20))
		}
		return fmt.Sprintf("%.1f KiB", v/(1<<10))
	case secondsPerByte:
		return fmt.Sprintf("%.1f ns/B", v*1e9)
	case bytesPerByte:
		return fmt.Sprintf("%.1f B/B", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// duration renders seconds with three digits that count.
func duration(v float64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}} {
		if v >= u.size || v <= -u.size {
			return fmt.Sprintf("%.3g %s", v/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.3g ns", v*1e9)
}

// end closes the report.
func (r *report) end() error {
	r.LoadEnd = load()
	if r.format == jsonFormat {
		enc := json.NewEncoder(r.out)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	met, missed := r.verdicts()
	r.print("\nload at the end %s; %d targets met, %d missed\n", r.LoadEnd, met, len(missed))
	if r.format == markdownFormat {
		return nil // the table has them
	}
	for _, w := range missed {
		r.print("  missed: %s %s\n", w.Part, strings.TrimSpace(w.String()))
	}
	return nil
}

func (r *report) verdicts() (met int, missed []row) {
	for _, w := range r.Rows {
		switch {
		case w.Met == nil:
		case *w.Met:
			met++
		default:
			missed = append(missed, w)
		}
	}
	return met, missed
}

// load is the machine's load average, because a figure without it says little.
func load() string {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(raw))[:3], " ")
}
