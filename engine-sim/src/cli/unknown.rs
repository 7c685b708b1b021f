//! vLLM has hundreds of flags. Those that mean nothing here are taken out before parsing, so that a real argument list works.

use clap::Command;

/// Splits arguments into those that `serve` knows and the rest (flags with their values). Underscores in flag names become dashes, as in vLLM.
pub fn without_unknown(args: Vec<String>, command: &Command) -> (Vec<String>, Vec<String>) {
    let serve = command.find_subcommand("serve").unwrap_or(command);
    let is_known = |name: &str| {
        matches!(name, "help" | "version")
            || serve.get_arguments().any(|arg| {
                arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
            })
    };
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    let mut dropping = false;
    for arg in args {
        let Some(flag) = arg.strip_prefix("--").filter(|f| !f.is_empty()) else {
            // A value belongs to the flag before it. A lone dash word that is no number is a short flag.
            let is_value = !arg.starts_with('-') || arg.parse::<f64>().is_ok();
            if dropping && is_value {
                unknown.push(arg);
            } else {
                dropping = false;
                known.push(arg);
            }
            continue;
        };
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (flag, None),
        };
        let name = name.replace('_', "-");
        dropping = !is_known(&name);
        if dropping {
            unknown.push(arg);
        } else {
            known.push(value.map_or_else(|| format!("--{name}"), |value| format!("--{name}={value}")));
        }
    }
    (known, unknown)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn a_real_argument_list_keeps_what_is_known() {
        let args = "coterie-engine-sim serve /models/tiny-moe --served-model-name tiny --gpu-memory-utilization 0.9 \
            --max_num_seqs=64 --swap-space -1 --enable-return-routed-experts --trust-remote-code --port 8000 \
            --compilation-config={\"a\":1} --no-enable-prefix-caching --block-size 16";
        let args = args.split_whitespace().map(str::to_owned).collect();
        let (known, unknown) = without_unknown(args, &super::super::Cli::command());
        assert_eq!(
            known.join(" "),
            "coterie-engine-sim serve /models/tiny-moe --served-model-name tiny --max-num-seqs=64 \
             --enable-return-routed-experts --port 8000 --block-size 16"
        );
        assert_eq!(unknown.len(), 7, "{unknown:?}");
    }
}
