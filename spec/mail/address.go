package mail

// AddressType is the kind of party an [Address] names.
type AddressType string

// The four address types. The address of a System sender is the name of the
// local swarm, of an Admin or User it is unique among their kind (R-010,
// R-017), of an Agent it is its name, bare or as name@swarm (R-013, S-02).
const (
	Admin  AddressType = "admin"
	Agent  AddressType = "agent"
	User   AddressType = "user"
	System AddressType = "system"
)

// Valid reports whether t is one of the four types.
func (t AddressType) Valid() bool {
	return t == Admin || t == Agent || t == User || t == System
}

// Address is a sender or a recipient: {"address_type":…,"address":…}.
type Address struct {
	Type AddressType `json:"address_type"`
	Name string      `json:"address"`
}

// Validate returns a *[FieldError] unless the type is known and the name is
// non-empty, valid UTF-8.
func (a Address) Validate() error {
	if err := a.check(); err != nil {
		return err
	}
	return checkText("address", a.Name)
}

func (a Address) check() error {
	if !a.Type.Valid() {
		return faultf("address_type", "must be admin, agent, user or system")
	}
	if a.Name == "" {
		return faultf("address", "must not be empty")
	}
	return nil
}
