package probe

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/unit"
)

var update = flag.Bool("update", false, "write the golden files")

func rules(t testing.TB) *Rules {
	t.Helper()
	r, err := NewRules()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Single stacks whose component is known, the innermost function first.
func TestAttribute(t *testing.T) {
	r := rules(t)
	rx := " process_backlog __napi_poll net_rx_action handle_softirqs do_softirq.part.0 __local_bh_enable_ip __dev_queue_xmit ip_finish_output2 do_syscall_64 entry_SYSCALL_64_after_hwframe"
	for stack, want := range map[string]string{
		"do_syscall_64 entry_SYSCALL_64_after_hwframe":                                      "socket",
		"_copy_from_iter tcp_sendmsg_locked tcp_sendmsg __sys_sendto do_syscall_64":         "socket",
		"_raw_spin_lock_bh sk_wait_data tcp_recvmsg __sys_recvfrom do_syscall_64":           "socket",
		"__rcu_read_unlock ip_local_deliver_finish" + rx:                                    "ip",
		"read_tsc ktime_get tcp_mstamp_refresh tcp_rcv_established" + rx:                    "transport",
		"fib_table_lookup ip_route_input_slow ip_route_input_noref ip_rcv_finish_core" + rx: "forwarding",
		"ip_forward ip_rcv" + rx: "forwarding",
		"nft_do_chain nft_do_chain_ipv4 nf_hook_slow ip_forward ip_rcv" + rx:                 "netfilter",
		"hash_net4_test ip_set_test set_match_v4 nft_match_eval nft_do_chain" + rx:           "netfilter",
		"br_nf_hook_thresh br_nf_pre_routing_finish br_handle_frame" + rx:                    "netfilter",
		"br_fdb_update br_handle_frame_finish br_nf_hook_thresh br_handle_frame" + rx:        "bridge",
		"veth_xmit dev_hard_start_xmit __dev_queue_xmit ip_output" + rx:                      "veth",
		"vxlan_xmit_one vxlan_xmit dev_hard_start_xmit __dev_queue_xmit" + rx:                "encapsulation",
		"ip_tunnel_xmit ipip_tunnel_xmit dev_hard_start_xmit" + rx:                           "encapsulation",
		"chacha20poly1305_encrypt wg_packet_encrypt_worker process_one_work":                 "encapsulation",
		"bpf_prog_2b1f3c_cil_from_container tcx_run sch_handle_ingress" + rx:                 "ebpf",
		"htb_dequeue __qdisc_run __dev_queue_xmit" + rx:                                      "qdisc",
		"skb_segment tcp_gso_segment validate_xmit_skb __dev_queue_xmit" + rx:                "qdisc",
		"enqueue_to_backlog netif_rx_internal __netif_rx" + rx:                               "driver",
		"try_to_wake_up ep_autoremove_wake_function __wake_up_common sock_def_readable" + rx: "scheduling",
		"kmem_cache_alloc_node_noprof __alloc_skb tcp_stream_alloc_skb tcp_sendmsg_locked":   "memory",
		// What the network itself allocates is the network's.
		"kmem_cache_alloc_noprof nf_conntrack_alloc nf_conntrack_in nf_hook_slow ip_rcv" + rx: "netfilter",
		"pskb_expand_head skb_cow_head vxlan_build_skb vxlan_xmit_one" + rx:                   "encapsulation",
		// An idle processor is idle, but not for the packet that interrupts it.
		"pv_native_safe_halt default_idle do_idle cpu_startup_entry":                               idleComponent,
		"finish_task_switch.isra.0 __schedule schedule_idle cpu_startup_entry":                     idleComponent,
		"br_forward net_rx_action handle_softirqs irq_exit_rcu common_interrupt cpu_startup_entry": "bridge",
		// A module's function that no pattern names is its module's.
		"frobnicate [nf_tables] somewhere":  "netfilter",
		"frobnicate [wireguard] somewhere":  "encapsulation",
		"frobnicate [unheard_of] somewhere": unit.OtherComponent,
		"":                                  unit.OtherComponent,
		// A system call is charged with what is near its entry alone.
		"deep_five deep_four deep_three deep_two deep_one do_syscall_64": unit.OtherComponent,
	} {
		var frames []string
		for _, f := range strings.Fields(stack) {
			if strings.HasPrefix(f, "[") {
				frames[len(frames)-1] += " " + f
				continue
			}
			frames = append(frames, f)
		}
		if got := r.Attribute(frames); got != want {
			t.Errorf("%s: %s, want %s", stack, got, want)
		}
	}
}

// The stacks in testdata/stacks were recorded in the lab (Linux 6.18, tcp_rr,
// udp_stream and tcp_stream), each network's heaviest. Next to each is what
// the rules make of it; no rule names less than a tenth.
func TestAttributeRecorded(t *testing.T) {
	paths, err := filepath.Glob("testdata/stacks/*.folded")
	if err != nil || len(paths) < 5 {
		t.Fatalf("%v (%v)", paths, err)
	}
	r := rules(t)
	of := map[string]map[string]float64{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".folded")
		share, total := map[string]float64{}, 0.0
		var unnamed []string
		for line := range strings.Lines(string(text)) {
			at := strings.LastIndexByte(line, ' ')
			stack, count := line[:max(at, 0)], strings.TrimSpace(line[at+1:])
			us, err := strconv.ParseFloat(count, 64)
			if err != nil {
				t.Fatalf("%s: %q", path, line)
			}
			frames := strings.Split(stack, ";")
			slices.Reverse(frames)
			c := r.Attribute(frames)
			if c == unit.OtherComponent {
				unnamed = append(unnamed, stack)
			}
			share[c] += us
			total += us
		}
		var table strings.Builder
		for _, c := range unit.Components() {
			share[c.Name] /= total
			if share[c.Name] > 0 {
				fmt.Fprintf(&table, "%-14s %5.1f %%\n", c.Name, 100*share[c.Name])
			}
		}
		if share[unit.OtherComponent] >= 0.1 {
			t.Errorf("%s: no rule names %.1f %%:\n%s", name, 100*share[unit.OtherComponent], strings.Join(unnamed, "\n"))
		}
		of[name] = share
		compareGolden(t, strings.TrimSuffix(path, ".folded")+".golden", table.String())
	}
	for name, must := range map[string]string{
		"bridge": "bridge", "flannel-vxlan": "encapsulation", "calico-direct-policy": "netfilter", "cilium-vxlan": "ebpf", "calico-direct": "forwarding",
	} {
		if of[name][must] == 0 {
			t.Errorf("nothing of %s is %s: %v", name, must, of[name])
		}
	}
}

func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s is not what the rules give (go test -update):\n%s", path, got)
	}
}

func TestRulesRefuse(t *testing.T) {
	for _, text := range []string{"nonsense: a*\n", "no colon\n", "ip: a*\nbridge: a*\n"} {
		if _, err := parseRules(text); err == nil {
			t.Errorf("no error for %q", text)
		}
	}
}
