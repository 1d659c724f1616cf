package cluster

import (
	"crypto/sha256"
	"encoding/binary"
)

// Slot is a part of the work that one host does.
type Slot int

// TaskSlots is how many slots the tasks are cut into. Changing it would move every task.
const TaskSlots = 1024

// Slots of what exactly one host does, whatever tasks there are.
const (
	// Registry is the health checks of the peers.
	Registry Slot = TaskSlots + iota
	// Reap is removing what is not needed any more.
	Reap
	// Suspect is running turns in which a host has died before.
	Suspect
	slots
)

// SlotOf returns the slot of a task by what names it.
func SlotOf(tenant, swarm, instance, task string) Slot {
	var named []byte
	for _, part := range []string{tenant, swarm, instance, task} {
		named = append(binary.AppendUvarint(named, uint64(len(part))), part...)
	}
	sum := sha256.Sum256(named)
	return Slot(binary.BigEndian.Uint16(sum[:]) >> 6)
}
