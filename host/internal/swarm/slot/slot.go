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

// Slots of what exactly one host does, whatever tasks there are. Two of them decide nothing; they stay, because a
// host refuses a server with another number of slots.
const (
	// Registry is unused: each host makes its own health checks of the peers.
	Registry Slot = Tasks + iota
	// Reap is removing what is not needed any more.
	Reap
	// Suspect is unused: each host runs the turns of its own tasks in which a host has died.
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
