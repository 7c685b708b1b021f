//! Fields of a child that somebody else added by hand. Server-side apply leaves them alone, because it does not own them; so the operator
//! takes over their ownership first, and its next apply removes what it does not declare.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::{Map, Value};

/// Parts of an object that the operator declares completely.
const DECLARED: [&str; 6] = ["f:spec", "f:data", "f:binaryData", "f:rules", "f:roleRef", "f:subjects"];

/// What `kubectl rollout restart` sets: a wish, not a change of what is declared.
const RESTART: [&str; 5] = [
    "f:spec",
    "f:template",
    "f:metadata",
    "f:annotations",
    "f:kubectl.kubernetes.io/restartedAt",
];

fn is_foreign(entry: &ManagedFieldsEntry, manager: &str) -> bool {
    let ours = entry.manager.as_deref() == Some(manager) && entry.operation.as_deref() == Some("Apply");
    // Controllers of Kubernetes write through subresources (status, scale); the next forced apply sets those fields right.
    let subresource = entry.subresource.as_deref().is_some_and(|s| !s.is_empty());
    !ours
        && !subresource
        && declared_fields(entry).is_some_and(|fields| DECLARED.iter().any(|p| fields.contains_key(*p)))
}

/// The fields of an entry but for a wish to restart.
fn declared_fields(entry: &ManagedFieldsEntry) -> Option<Map<String, Value>> {
    let mut fields = entry.fields_v1.as_ref()?.0.as_object()?.clone();
    remove(&mut fields, &RESTART);
    Some(fields)
}

/// Removes a path, and what it leaves empty above it.
fn remove(fields: &mut Map<String, Value>, path: &[&str]) {
    let [first, rest @ ..] = path else { return };
    if rest.is_empty() {
        fields.remove(*first);
        return;
    }
    let Some(Value::Object(inner)) = fields.get_mut(*first) else {
        return;
    };
    remove(inner, rest);
    // "." stands for the map itself.
    if inner.keys().all(|key| key == ".") {
        fields.remove(*first);
    }
}

/// Whether somebody else owns fields in what `manager` declares completely.
pub fn has_foreign_fields(entries: &[ManagedFieldsEntry], manager: &str) -> bool {
    entries.iter().any(|entry| is_foreign(entry, manager))
}

/// The entries after `manager` took over the foreign ones.
pub fn taken_over(entries: &[ManagedFieldsEntry], manager: &str) -> Vec<ManagedFieldsEntry> {
    let mut fields = Map::new();
    let mut template = None;
    let mut rest = Vec::new();
    for entry in entries {
        let ours = entry.manager.as_deref() == Some(manager) && entry.operation.as_deref() == Some("Apply");
        if ours || is_foreign(entry, manager) {
            if let Some(set) = declared_fields(entry) {
                unite(&mut fields, &set);
            }
            if ours || template.is_none() {
                template = Some(entry.clone());
            }
        } else {
            rest.push(entry.clone());
        }
    }
    if let Some(mut entry) = template {
        entry.manager = Some(manager.to_owned());
        entry.operation = Some("Apply".to_owned());
        entry.subresource = None;
        entry.fields_v1 = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::FieldsV1(Value::Object(
            fields,
        )));
        rest.push(entry);
    }
    rest
}

fn unite(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(Value::Object(a)), Value::Object(b)) => unite(a, b),
            (Some(_), _) => {}
            (None, _) => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::FieldsV1;
    use serde_json::json;

    fn entry(manager: &str, operation: &str, subresource: Option<&str>, fields: Value) -> ManagedFieldsEntry {
        ManagedFieldsEntry {
            manager: Some(manager.into()),
            operation: Some(operation.into()),
            subresource: subresource.map(Into::into),
            fields_v1: Some(FieldsV1(fields)),
            ..ManagedFieldsEntry::default()
        }
    }

    #[test]
    fn a_wish_to_restart_is_left_alone() {
        let annotations = |more: Value| {
            let mut wish = json!({".": {}, "f:kubectl.kubernetes.io/restartedAt": {}});
            wish.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"f:spec": {"f:template": {"f:metadata": {"f:annotations": wish}}}})
        };
        let restart = entry("kubectl-rollout", "Update", None, annotations(json!({})));
        assert!(!has_foreign_fields(&[restart], "me"));
        let more = entry("kubectl-edit", "Update", None, annotations(json!({"f:mine": {}})));
        assert!(has_foreign_fields(std::slice::from_ref(&more), "me"));
        let after = taken_over(&[more], "me");
        let fields = after[0].fields_v1.as_ref().unwrap().0.to_string();
        assert!(fields.contains("f:mine") && !fields.contains("restartedAt"), "{fields}");
    }

    #[test]
    fn hand_edits_are_taken_over_and_controllers_are_not() {
        let entries = [
            entry("me", "Apply", None, json!({"f:spec": {"f:replicas": {}}})),
            entry("kubectl-edit", "Update", None, json!({"f:spec": {"f:paused": {}}})),
            entry(
                "kube-controller-manager",
                "Update",
                Some("status"),
                json!({"f:status": {}}),
            ),
            entry(
                "kube-controller-manager",
                "Update",
                None,
                json!({"f:metadata": {"f:annotations": {}}}),
            ),
        ];
        assert!(has_foreign_fields(&entries, "me"));
        let after = taken_over(&entries, "me");
        assert_eq!(after.len(), 3);
        let ours = after.iter().find(|e| e.manager.as_deref() == Some("me")).unwrap();
        assert_eq!(
            ours.fields_v1.as_ref().unwrap().0,
            json!({"f:spec": {"f:replicas": {}, "f:paused": {}}})
        );
        assert!(!has_foreign_fields(&after, "me"));
    }
}
