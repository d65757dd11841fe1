"""The built-in playbook: planner, coder and judge that work by rules, without a language model."""
