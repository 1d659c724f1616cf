// Package slot owns how tasks are cut into slots, each of which one host works on. It must not
// know which host that is.
package slot

import (
	"crypto/sha256"
	"encoding/binary"
)

// Slot is a part of the work that one host does.
type Slot int

// Tasks is how many slots the tasks are cut into. Changing it would move every task.
const Tasks = 1024

// Slots of what exactly one host does, whatever tasks there are.
const (
	// Registry is for the health checks of the peers. It decides nothing: each host makes its own.
	Registry Slot = Tasks + iota
	// Reap is removing what is not needed any more.
	Reap
	// Suspect is for turns in which a host has died. It decides nothing: each host runs its own.
	Suspect
	// Count is how many slots there are.
	Count
)

// Of returns the slot of a task by what names it.
func Of(tenant, swarm, instance, task string) Slot {
	var named []byte
	for _, part := range []string{tenant, swarm, instance, task} {
		named = append(binary.AppendUvarint(named, uint64(len(part))), part...)
	}
	sum := sha256.Sum256(named)
	return Slot(binary.BigEndian.Uint16(sum[:]) >> 6)
}
