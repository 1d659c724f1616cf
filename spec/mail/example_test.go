package mail_test

import (
	"fmt"

	"skep/spec/mail"
)

func ExampleParseMessage() {
	_, err := mail.ParseMessage([]byte(`{
		"id": "8d2f6b0e-6f0e-4a39-9f5e-0d2c6a1c7b11", "timestamp": "2026-03-01T09:30:00Z", "msg_type": "broadcast",
		"message": {"task_id": "t1", "broadcast_id": "c0a1f6de-5d53-4c8e-8f0b-2f63c5f2a001", "subject": "", "body": "",
			"sender": {"address_type": "agent", "address": "chief"},
			"recipients": [{"address_type": "agent", "address": ""}]}}`))
	fmt.Println(err)
	// Output: message.recipients[0].address: must not be empty
}

func ExampleNewOwner() {
	o, err := mail.NewOwner(mail.RoleUser, "acme", "alice@example.com", "hive")
	fmt.Println(o, err)
	// Output: user:acme/alice%40example.com@hive <nil>
}
