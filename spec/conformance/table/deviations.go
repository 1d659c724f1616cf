package main

import (
	"fmt"
	"strings"

	"skep/spec/openapi"
)

// deviationsPreface says what the chapter holds, and which statements have no judge from
// outside.
const deviationsPreface = `
## Deviations from the published description

R-003 and R-057 are judged by spec/openapi.yaml, which is ours. ` + "`make conform-reference`" + `
holds it against the published description: it differs in these places of the
operations that are published, each for its reason, and in no other.
spec/openapi.TestDeviations_R003 holds the list against spec/openapi.yaml.

- missing: published, and not here.
- more: here, where the published schema takes or sends no more members.
- optional: required there, not here.
- type: of the types that are named, here.

Statuses beyond the published ones are left out: they are in the table of endpoints.

Other statements whose tests share our reading:

- R-001, R-002, R-005 to R-009, S-01: by our schemas and our model of messages, which
  ` + "`make conform-reference`" + ` holds against the published schemas. A task_id, there a
  UUID, is any printable text here.
- R-059 to R-061, S-14 to S-20: by the roles and shapes of spec/openapi.yaml. Of roles the
  published description has none but in words.
- R-002, R-004, R-024, R-033 to R-036, R-040, R-041, R-045 to R-047, R-049, R-082,
  R-085, S-09, S-19, G-02 to G-05, G-08, G-11, G-19, G-39 to G-42 and G-65, where the peer
  is a reference server: by host/mailtest/refpeer, a stand-in written from notes about it.
- Those that tests of host/mailtest hold: by host/mailtest/refclient, a client written
  from the same notes.

| place | what | reason |
|---|---|---|
`

// renderDeviations writes where the description differs from the published one.
func renderDeviations(list []openapi.Deviation) string {
	var b strings.Builder
	b.WriteString(deviationsPreface)
	for _, d := range list {
		what := d.Kind
		if len(d.Types) > 0 {
			what += ": " + strings.Join(d.Types, " or ")
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", d.Place, what, d.Reason)
	}
	return b.String()
}
