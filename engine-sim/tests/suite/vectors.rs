//! The forward pass against the model's own vectors: every token and every expert choice.

use std::path::Path;

use coterie_engine_sim::kv::BlockPool;
use coterie_engine_sim::model::{Model, Sampling, choose};
use coterie_engine_sim::tokenizer::TextCodec;
use serde::Deserialize;

#[derive(Deserialize)]
struct Vectors {
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    prompt: String,
    prompt_token_ids: Vec<u32>,
    greedy_token_ids: Vec<u32>,
    text: String,
    first_logits: std::collections::HashMap<String, f32>,
    routed_experts: Vec<Vec<Vec<u8>>>,
}

#[test]
fn forward_pass_reproduces_all_vectors() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tiny-moe");
    let model = Model::load(&folder).unwrap();
    let codec = TextCodec::load(&folder).unwrap();
    let vectors: Vectors =
        serde_json::from_str(&std::fs::read_to_string(folder.join("vectors.json")).unwrap()).unwrap();
    assert_eq!(vectors.vectors.len(), 8);
    let greedy = Sampling {
        temperature: 0.0,
        top_p: 1.0,
        top_k: 0,
        seed: 0,
    };
    for v in vectors.vectors {
        assert_eq!(codec.encode(&v.prompt).unwrap(), v.prompt_token_ids);
        assert_eq!(codec.decode(&v.prompt_token_ids), v.prompt);
        assert_eq!(codec.decode(&v.greedy_token_ids), v.text);
        let config = model.config();
        let mut pool = BlockPool::new(8, 16, config.kv_token_width(), config.kv_width());
        let table = pool.take(8).unwrap();
        let mut scratch = model.scratch();
        let mut row = vec![0; config.row_width()];
        let mut ids = v.prompt_token_ids.clone();
        let mut generated = Vec::new();
        for position in 0..v.routed_experts.len() {
            model.step(&mut scratch, ids[position], position, &mut pool.paged(&table), &mut row);
            for (layer, chosen) in row.chunks_exact(config.num_experts_per_tok).enumerate() {
                let mut chosen = chosen.to_vec();
                chosen.sort_unstable();
                assert_eq!(
                    chosen, v.routed_experts[position][layer],
                    "position {position}, layer {layer}"
                );
            }
            if position + 1 >= v.prompt_token_ids.len() && generated.len() < v.greedy_token_ids.len() {
                let logits = model.logits(&mut scratch);
                if generated.is_empty() {
                    for (id, value) in &v.first_logits {
                        let ours = logits[id.parse::<usize>().unwrap()];
                        assert!((ours - value).abs() < 2e-3, "logit of {id}: {ours} and {value}");
                    }
                }
                let id = choose(logits, &greedy, generated.len(), &[]);
                generated.push(id);
                ids.push(id);
            }
        }
        assert_eq!(generated, v.greedy_token_ids);
    }
}
