package network

// PolicyPorts are the ports that the policy of the networks with policy allows,
// from pods and nodes of the lab, by TCP and UDP; all else is denied.
func PolicyPorts() (first, last uint16) { return 1024, 65535 }

// PolicyWords says what the policy of the networks with policy allows.
const PolicyWords = "TCP and UDP ports from 1024 on, from and to the lab's pods and nodes"
