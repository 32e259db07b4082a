"""A complete learner in one file: advantage actor-critic in JAX over 16 simulations."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax

import ackademy.envs

gymnasium.register_envs(ackademy.envs)

ENVS, STEPS, UPDATES, GAMMA, SEED = 16, 20, 20, 0.9, 1

envs = gymnasium.make_vec("ackademy/Flow-v0", num_envs=ENVS, reward="drinc", flat=True)
n_inputs, n_actions = envs.single_observation_space.shape[0], int(envs.single_action_space.n)


def layer(key, n_in, n_out):
    return {"w": jax.random.normal(key, (n_in, n_out)) / np.sqrt(n_in), "b": jnp.zeros(n_out)}


def network(params, observations):
    hidden = jnp.tanh(observations @ params["hidden"]["w"] + params["hidden"]["b"])
    out = hidden @ params["out"]["w"] + params["out"]["b"]
    return out[..., :-1], out[..., -1]  # logits, value


def loss(params, observations, actions, returns):
    logits, values = network(params, observations)
    log_p = jax.nn.log_softmax(logits)
    taken = jnp.take_along_axis(log_p, actions[..., None], -1)[..., 0]
    advantage = jax.lax.stop_gradient(returns - values)
    entropy = -(jnp.exp(log_p) * log_p).sum(-1)
    return (-taken * advantage + 0.5 * (returns - values) ** 2 - 0.01 * entropy).mean()


@jax.jit
def update(params, state, *batch):
    grads = jax.grad(loss)(params, *batch)
    changes, state = optimizer.update(grads, state)
    return optax.apply_updates(params, changes), state


keys = jax.random.split(jax.random.key(SEED), 2)
params = {"hidden": layer(keys[0], n_inputs, 64), "out": layer(keys[1], 64, n_actions + 1)}
optimizer = optax.adam(1e-3)
state, act = optimizer.init(params), jax.jit(network)
generator = np.random.default_rng(SEED)
observations, _ = envs.reset(seed=SEED)
for number in range(UPDATES):
    batch = []
    for _ in range(STEPS):
        logits, _ = act(params, observations)
        actions = np.argmax(logits + generator.gumbel(size=logits.shape), axis=-1)
        following, rewards, _, over, _ = envs.step(actions)
        batch.append((observations, actions, rewards, over))
        observations = following
    returns, following = [], np.asarray(act(params, observations)[1])
    for _, _, rewards, over in reversed(batch):
        following = rewards + GAMMA * np.where(over, 0.0, following)
        returns.insert(0, following)
    seen, done, rewards, _ = map(np.stack, zip(*batch, strict=True))
    params, state = update(params, state, seen, done, np.stack(returns))
    if number % 5 == 4:
        print(f"update {number + 1:2}: reward per step {rewards.mean():+.4f}")
