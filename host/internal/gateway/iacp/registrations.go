package iacp

import "fmt"

// register remembers what an agent has registered on a connection, where there is room for it.
func (all *conns) register(c *conn, a agentInfo) error {
	all.mu.Lock()
	defer all.mu.Unlock()
	known := c.agents[a.ID]
	if known == nil && len(c.agents) >= maxAgents {
		return &fault{code: codeTimeout, reason: reasonBusy, text: fmt.Sprintf("%d agents have registered or spoken on the connection: unregister one, or register on another connection", maxAgents), retry: true}
	}
	if known == nil {
		known = &spoken{}
	}
	if err := all.reserve(realmOf(c.caller), a.bytes()-known.registeredBytes()); err != nil {
		return err
	}
	c.agents[a.ID], known.registered = known, &a
	return nil
}

// maxRegistered bounds what the agents of one realm have registered, their events among it, in bytes.
const maxRegistered = 4 << 20

// reserve counts bytes that the agents of a realm register, or give back. all.mu is held.
func (all *conns) reserve(key realmKey, bytes int) error {
	total := all.bytes[key] + bytes
	if bytes > 0 && total > maxRegistered {
		return &fault{code: codeTimeout, reason: reasonBusy, text: fmt.Sprintf("the agents of %s have registered %d bytes of the %d that they may: unregister one, or register less of each", key.realm, all.bytes[key], maxRegistered), retry: true}
	}
	if all.bytes[key] = total; total == 0 {
		delete(all.bytes, key)
	}
	return nil
}

// textOverhead is what a text takes besides its characters, in bytes.
const textOverhead = 32

// textBytes is what texts take in memory.
func textBytes(texts ...string) (n int) {
	for _, t := range texts {
		n += textOverhead + len(t)
	}
	return n
}

// bytes is what a registration takes in memory.
func (a agentInfo) bytes() int {
	return textBytes(a.ID, a.Name, a.Type, a.Version, a.Description) + textBytes(a.Capabilities...) + textBytes(a.Tools...) + textBytes(a.ReadTools...)
}

// registeredBytes is what the registration of an agent takes, 0 without one.
func (a *spoken) registeredBytes() int {
	if a.registered == nil {
		return 0
	}
	return a.registered.bytes()
}

// bytes is what an agent has registered.
func (a *spoken) bytes() int { return a.registeredBytes() + textBytes(a.events...) }
