package diagnosis

// Severity is how grave a finding is.
type Severity string

const (
	// Error: a host does not start, or something of it does not work.
	Error Severity = "error"
	// Warning: it works, and will not for long, or not as safely as it could.
	Warning Severity = "warning"
)

// Finding is one thing that is wrong.
type Finding struct {
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	// Subject is what it is wrong with: a path, an address, a name in the file.
	Subject string `json:"subject"`
	Message string `json:"message"`
	// Fix is what to do.
	Fix string `json:"fix"`
}

// Ids of findings. Each has a section in docs/doctor.md.
const (
	FileMissing     = "file-missing"
	FileInvalid     = "file-invalid"
	FileWarning     = "file-warning"
	FileReplaceable = "file-replaceable"
	ModuleRefused   = "module-refused"

	DataReplaceable    = "data-replaceable"
	DataUnusable       = "data-unusable"
	DataMissing        = "data-missing"
	KeyReadable        = "key-readable"
	CacheReplaceable   = "cache-replaceable"
	CacheUnusable      = "cache-unusable"
	ClockBehind        = "clock-behind"
	DiskLow            = "disk-low"
	InodesLow          = "inodes-low"
	OpenFilesLow       = "open-files-low"
	AddressTaken       = "address-taken"
	AddressUnusable    = "address-unusable"
	ConfinementMissing = "confinement-missing"
	CgroupUnusable     = "cgroup-unusable"

	StoreDamaged      = "store-damaged"
	StoreUnreadable   = "store-unreadable"
	StoreServer       = "store-server"
	KeyringMissing    = "keyring-missing"
	KeyringLocked     = "keyring-locked"
	KeyringDamaged    = "keyring-damaged"
	AuditDamaged      = "audit-damaged"
	QuarantineDamaged = "quarantine-damaged"
	AgentQuarantined  = "agent-quarantined"
	PeersDamaged      = "peers-damaged"
	TenantQuota       = "tenant-quota"

	CertificateExpired = "certificate-expired"
	CertificateEnds    = "certificate-ends"

	PeerSilent       = "peer-silent"
	ModelSilent      = "model-silent"
	ModelRefuses     = "model-refuses"
	ToolServerSilent = "tool-server-silent"
	ToolChanged      = "tool-changed"
	WebhookSilent    = "webhook-silent"
)

// IDs are the ids of all findings.
func IDs() []string {
	return []string{
		FileMissing, FileInvalid, FileWarning, FileReplaceable, ModuleRefused,
		DataReplaceable, DataUnusable, DataMissing, KeyReadable, CacheReplaceable, CacheUnusable, ClockBehind, DiskLow, InodesLow,
		OpenFilesLow, AddressTaken, AddressUnusable, ConfinementMissing, CgroupUnusable,
		StoreDamaged, StoreUnreadable, StoreServer, KeyringMissing, KeyringLocked, KeyringDamaged,
		AuditDamaged, QuarantineDamaged, AgentQuarantined, PeersDamaged, TenantQuota,
		CertificateExpired, CertificateEnds,
		PeerSilent, ModelSilent, ModelRefuses, ToolServerSilent, ToolChanged, WebhookSilent,
	}
}
