package mail

// The tiers of MAIL's priority queue, most urgent first (S-03, X-20, X-21).
// Within a tier mail is taken in the order in which it was stored (S-04, X-19).
const (
	TierSystem    = 1 // anything from the system
	TierPerson    = 2 // anything from a user or an admin
	TierInterrupt = 3 // interrupts and completions from agents
	TierBroadcast = 4 // broadcasts from agents
	TierMail      = 5 // requests and responses from agents
)

// Tier returns the tier of m, 1 to 5; smaller goes first.
func Tier(m Message) int {
	switch m.Payload.Sender.Type {
	case System:
		return TierSystem
	case User, Admin:
		return TierPerson
	case Agent:
	}
	switch m.Type {
	case Interrupt, BroadcastComplete:
		return TierInterrupt
	case Broadcast:
		return TierBroadcast
	case Request, Response:
	}
	return TierMail
}
