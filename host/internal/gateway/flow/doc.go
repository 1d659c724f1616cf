// Package flow owns the order of an exchange's pieces: chunks that a running turn emits
// are shown when they come, and numbered as the task's log will have them. It must not
// know a protocol, nor who serves the feed.
package flow
