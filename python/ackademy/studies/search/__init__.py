"""Program search: controller files that are proposed, judged on networks, and bred."""
