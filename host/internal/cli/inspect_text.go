package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"skep/abi"
	"skep/host/internal/turn/wasm"
)

// textTable writes aligned lines: a title, dimmed, and a text. A repeated title is
// left out.
type textTable struct {
	strings.Builder
	style style
	last  string
}

func (r *textTable) add(title, text string) {
	shown := title
	if title == r.last {
		shown = ""
	}
	r.last = title
	fmt.Fprintf(r, "%s  %s\n", r.style.dim(pad(shown, 8)), indentBelow(printable(text), 10))
}

// text renders an inspection for a terminal.
func (i *inspection) text(st style) string {
	b := &textTable{style: st}
	if d := i.Descriptor; d != nil {
		b.add("module", strings.TrimSuffix(d.Name+" "+d.Version+": "+d.Description, ": "))
	}
	if i.Refused != nil {
		b.add("refused", fmt.Sprintf("(%s) %s", i.Refused.Step, i.Refused.Reason))
	}
	b.add("file", i.File)
	b.add("sha256", i.SHA256)
	b.add("size", sizeText(int64(i.Size)))
	if i.ABI != 0 {
		b.add("ABI", fmt.Sprint(i.ABI))
	}
	if i.Limits != nil {
		b.add("language", i.Language.text())
	}
	i.describedText(b)
	i.structureText(b)
	i.costText(b)
	if i.Descriptor != nil {
		b.add("use it", useTable(i.Descriptor))
		b.add("use it", "source = "+tomlText(i.source))
		b.add("use it", "sha256 = "+tomlText(i.SHA256))
		if actsAlone(i.Descriptor) && slices.ContainsFunc(i.Requests, func(r requestView) bool { return r.Allow == "http" }) {
			b.add("use it", `allow = { http = ["GET https://api.example.com"] }`)
		}
	}
	return b.String()
}

func (l *languageView) text() string {
	if l == nil {
		return "not known: its tools left no mark"
	}
	return fmt.Sprintf("probably %s (%s)", strings.TrimSpace(clip(l.Probably+" "+l.Version, 60)), l.Mark)
}

func (i *inspection) describedText(b *textTable) {
	if i.Descriptor == nil {
		return
	}
	for _, agent := range i.Descriptor.Agents {
		b.add("agents", strings.TrimSuffix(agent.Name+": "+agent.Description, ": "))
	}
	for _, action := range i.Descriptor.Actions {
		b.add("actions", strings.TrimSuffix(action.Name+": "+action.Description, ": "))
	}
	for _, line := range requestLines(i.Requests) {
		b.add("asks for", line)
	}
}

func (i *inspection) structureText(b *textTable) {
	if i.Limits == nil {
		return
	}
	for _, line := range importLines(i.Imports) {
		b.add("imports", line)
	}
	for _, line := range limitLines(i.Limits) {
		b.add("limits", line)
	}
	if m := i.Memory; m != nil {
		text := "at least " + binarySize(m.Minimum) + ", no maximum of its own"
		if m.Maximum != nil {
			text = "at least " + binarySize(m.Minimum) + ", at most " + binarySize(*m.Maximum)
		}
		b.add("memory", text)
	}
}

func (i *inspection) costText(b *textTable) {
	if i.Start != nil {
		b.add("start", i.Start.text())
	}
	if m := i.Metering; m != nil && m.Charges > 0 {
		b.add("metering", fmt.Sprintf("code %s, metered %s (%+.0f %%); %d places take fuel, one per %d bytes",
			binarySize(int64(m.Code)), binarySize(int64(m.Metered)),
			100*float64(m.Metered-m.Code)/float64(m.Code), m.Charges, m.Code/m.Charges))
	}
	if c := i.Compile; c != nil {
		cached := "not in the compile cache before"
		if c.Cached {
			cached = "in the compile cache already"
		}
		b.add("compile", fmt.Sprintf("ready in %s without the cache; %s", span(time.Duration(c.Millis)*time.Millisecond), cached))
	}
}

// text renders what a turn begins as, and what becomes of its instance.
func (s *startView) text() string {
	if s.Failed != "" {
		return "fails within the default limits: " + oneLine(s.Failed)
	}
	if s.Anew != "" {
		return fmt.Sprintf("%s of memory; every turn starts it anew, because %s", binarySize(s.Memory), s.Anew)
	}
	how := map[wasm.Reset]string{
		wasm.ResetCopy:  "copying back what a turn changed",
		wasm.ResetPages: "giving its pages back",
		wasm.ResetMixed: "copying for the next few turns, giving the pages back for others",
	}[s.Reset]
	return fmt.Sprintf("%s of memory, kept as an image of %s; reset by %s", binarySize(s.Memory), binarySize(s.Image), how)
}

// sizeText renders a size roughly and exactly.
func sizeText(n int64) string {
	if n < 1<<10 {
		return binarySize(n)
	}
	return fmt.Sprintf("%s (%d bytes)", binarySize(n), n)
}

func binarySize(n int64) string {
	switch {
	case n < 1<<10:
		return plural(n, "byte")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// limitLines lists the limits a module comes nearest to, and all it is beyond.
func limitLines(limits []limitView) []string {
	const few = 3
	nearest := slices.Clone(limits)
	slices.SortStableFunc(nearest, func(a, b limitView) int { return cmp.Compare(b.share(), a.share()) })
	var lines []string
	for n, l := range nearest {
		if n >= few && l.Used <= l.Limit {
			return append(lines, fmt.Sprintf("%d others: %.0f %% or less", len(nearest)-n, 100*l.share()))
		}
		lines = append(lines, fmt.Sprintf("%s %s of %s (%.0f %%)", strings.TrimPrefix(l.Key, "limits.module."), l.amount(l.Used), l.amount(l.Limit), 100*l.share()))
	}
	return lines
}

// amount renders a number with the limit's unit.
func (l limitView) amount(n int64) string {
	if l.Key == "limits.module.size" || l.Key == "limits.module.body" {
		return binarySize(n)
	}
	return fmt.Sprint(n)
}

// requestLines explains the grants a module requests.
func requestLines(requests []requestView) []string {
	if len(requests) == 0 {
		return []string{"nothing but mail"}
	}
	lines := make([]string, len(requests))
	for i, r := range requests {
		need := "needs to"
		if r.Optional {
			need = "would like to"
		}
		lines[i] = fmt.Sprintf("%s %s: %s", need, r.To, oneLine(r.Reason))
	}
	return lines
}

// importLines groups imports by the module they come from.
func importLines(imports []string) []string {
	const wide = 90
	if len(imports) == 0 {
		return []string{"nothing"}
	}
	var lines []string
	last := ""
	for _, name := range imports {
		module, function, _ := strings.Cut(inLine(name), ".")
		switch n := len(lines) - 1; {
		case module != last:
			lines, last = append(lines, module+": "+function), module
		case len(lines[n])+len(function) > wide:
			lines[n] += ","
			lines = append(lines, "  "+function)
		default:
			lines[n] += ", " + function
		}
	}
	return lines
}

// actsAlone reports whether a module has actions and no agent.
func actsAlone(d *abi.Descriptor) bool { return len(d.Agents) == 0 && len(d.Actions) > 0 }

// useTable is the head of a table that a module fits.
func useTable(d *abi.Descriptor) string {
	if actsAlone(d) {
		return "[actions." + d.Actions[0].Name + "]"
	}
	return "[agents." + agentName(d) + "]"
}

// agentName suggests what to call an agent of this module: its own name, as far
// as a swarm.toml takes it.
func agentName(d *abi.Descriptor) string {
	name := d.Name
	if len(d.Agents) > 0 {
		name = d.Agents[0].Name
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(letters+"_-", r) {
			return r
		}
		return '-'
	}, name)
	const longest = 64
	name = strings.TrimLeft(name[:min(len(name), longest)], "_-")
	return cmp.Or(name, "agent")
}

// tomlText writes a string of TOML, in one line.
func tomlText(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case unprintable(r):
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			b.WriteRune(r)
		}
	}
	return `"` + b.String() + `"`
}
