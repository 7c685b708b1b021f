//! The commands to try next.

use super::{FLEET, NAMESPACE, fleet::SYSTEM, reach::Router, target::Target};

/// Prints them. Everything stays up.
pub(super) fn print(target: &Target, router: &Router) {
    println!("\nEverything stays up. Try next:\n");
    for line in &target.environment {
        println!("  {line}");
    }
    let address = if target.local {
        router.address.trim_end_matches(":80").to_owned()
    } else {
        println!("  kubectl -n {NAMESPACE} port-forward service/{FLEET}-router 8080:80 &");
        "127.0.0.1:8080".to_owned()
    };
    println!(
        "  kubectl -n {NAMESPACE} get moe,calibrationruns,centroidtables
  kubectl -n {NAMESPACE} describe moe {FLEET}
  kubectl explain moe.spec.routing
  kubectl -n {NAMESPACE} scale moe {FLEET} --replicas 5
  kubectl -n {NAMESPACE} get pods -l coterie.dev/deployment={FLEET} -w
  kubectl -n {SYSTEM} logs deploy/coterie-operator

A streamed answer to a prompt of yours:

  curl -N http://{address}/v1/completions -H 'content-type: application/json' \\
    -d '{{\"model\": \"{FLEET}\", \"prompt\": \"Once upon a time\", \"max_tokens\": 64, \"stream\": true}}'
"
    );
    if target.local {
        println!("To stop it all: cargo xtask cluster down");
    } else {
        println!("To remove it: kubectl delete namespace {NAMESPACE} && helm -n {SYSTEM} uninstall coterie");
    }
}
