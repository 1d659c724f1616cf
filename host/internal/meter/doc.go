// Package meter owns the numbers that agents report to their operator: which
// series there are, how many one agent and one tenant may have, and what they
// stand at. It must not know when a report counts, nor how numbers are shown.
// Nothing of it lasts beyond the process.
package meter
