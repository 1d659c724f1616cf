package cluster

import "skep/host/internal/swarm/slot"

// Slot is a part of the work that one host does.
type Slot = slot.Slot

const slots = slot.Count
