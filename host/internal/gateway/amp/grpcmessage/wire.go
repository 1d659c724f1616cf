package grpcmessage

// Wire is a Message as its bytes, for a server or a client that decodes no messages.
type Wire struct{ Raw []byte }

// WireBytes returns the bytes.
func (w *Wire) WireBytes() []byte { return w.Raw }

// SetWireBytes replaces the bytes.
func (w *Wire) SetWireBytes(raw []byte) { w.Raw = raw }
